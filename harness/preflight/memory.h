// Memory: what the planner says that each rank of the job needs, against what the ranks really have.
#pragma once

#include "engine/job/memory.h"
#include "harness/preflight/machine.h"

namespace firedrill::preflight {

struct MemoryNeeds {
  std::vector<std::int64_t> of_rank;  // bytes, by rank: state, activations, buffers
};

// Pure. On a CPU all ranks of a host share its memory; each also holds what it held before any work.
std::vector<Finding> judge_memory(const std::vector<MachineOfRank>& ranks, const MemoryNeeds& needs);

}  // namespace firedrill::preflight
