// Limits: what is no mistake in a job and yet more than this engine can run. Such a job is planned (memory.h) and never
// run.
#pragma once

#include <string>
#include <vector>

#include "engine/job/job.h"

namespace firedrill {

// Each names the value, the place and what can run.
std::vector<std::string> cannot_run(const Job& job);

}  // namespace firedrill
