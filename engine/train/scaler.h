// Dynamic loss scaling as a state machine without side effects. The loss is multiplied by `scale` before backward; a
// step whose gradients are not finite is skipped on every rank and lowers the scale; enough good steps in a row raise
// it. As in Micikevicius et al., "Mixed precision training" (ICLR 2018).
#pragma once

#include <cstdint>

#include "engine/job/job.h"

namespace firedrill {

struct ScalerState {
  float scale = 1;                  // saved in every checkpoint
  std::int64_t growth_tracker = 0;  // good steps since the last change of the scale
  bool operator==(const ScalerState&) const = default;
};

// What a job starts with. Without dynamic scaling the scale is 1 for ever.
ScalerState initial_scaler(const ScalerSpec& spec);

// After a step: `overflow` says that a gradient (of any rank) was not finite, so that the step was skipped.
ScalerState scaler_after_step(const ScalerSpec& spec, ScalerState state, bool overflow);

}  // namespace firedrill
