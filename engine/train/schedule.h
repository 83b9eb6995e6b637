// The learning rate of a step: linear warm-up, then constant or cosine. A pure function of the job and the step's
// number, so it has no state to save. Only IEEE +, -, *, / in double: no libm, whose cosine differs between C
// libraries.
#pragma once

#include <cstdint>

#include "engine/job/job.h"

namespace firedrill {

// `step` from 1 to job.steps. Warm-up: lr * step / warmup_steps for the first warmup_steps steps. Cosine: from lr after
// the warm-up down to lr * lr_min_ratio at the last step.
double learning_rate(const OptimizerSpec& spec, int steps, std::int64_t step);

// cos(pi * x) for x in [0, 1], correct to a few units in the last place.
double cosine_of_half_turns(double x);

}  // namespace firedrill
