// What each rank says of the machine that it is on, and what of it stands in the way of a long run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/preflight/finding.h"

namespace firedrill::preflight {

struct MachineOfRank {
  std::string host;
  double cores = 0;  // that it may use: by affinity and by the quota of its control group
  std::int64_t memory_total = 0;
  std::int64_t memory_available = 0;  // of the node, now; within the limit of the control group
  std::int64_t memory_own = 0;        // what this process holds before it does any work
  std::int64_t address_space = -1;    // limit of one process; -1: none
  std::int64_t files = 0;             // limits; -1: none
  std::int64_t processes = 0;
  std::int64_t locked_memory = 0;
  std::int64_t shared_memory = 0;  // free in /dev/shm
  std::int64_t clock_offset = 0;   // ns that its clock is ahead of rank 0's
  std::int64_t clock_error = 0;    // ns, within which that is known
  std::string numerics;            // LibTorch's version, device and the digest of the numerics probe
  std::string numerics_again;      // the same once more
  std::string nccl;                // versions; empty: not there
  std::string driver;
};

void to_json(Json& json, const MachineOfRank& rank);
void from_json(const Json& json, MachineOfRank& rank);

struct MachineNeeds {
  int ranks = 1;
  bool gpu = false;
};

// Pure.
std::vector<Finding> judge_machine(const std::vector<MachineOfRank>& ranks, const MachineNeeds& needs);

}  // namespace firedrill::preflight
