// A rank of the process world: what the supervisor tells it, and its main. The composition root inside a rank's
// process: here the real seams are put together with the faults around them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/os/launcher.h"
#include "engine/os/steady_clock.h"
#include "harness/world/world.h"

namespace firedrill {

// The payload of RankStart; the same for all ranks of an attempt.
struct RankAssignment {
  std::string plan;  // as JSON
  std::int64_t floor = -1;
  std::vector<int> fired;  // by index in the plan's faults
  bool other_layout = false;
  Epoch epoch;
  std::uint16_t store_port = 0;
  std::string disk;    // the directory of the checkpoints
  std::string pulses;  // path of the board that shows them (pulse_board.h)
  Digest corpus_digest;
  std::string numerics_key;
};

std::string to_payload(const RankAssignment& assignment);
// Errors: corrupted.
Result<RankAssignment> assignment_from(std::string_view payload);

// Lives the attempt and reports its end over the channel; the result is the process's exit code. `make` makes the parts
// of the plan's mutant.
int run_process_rank(RankStart start, const MutantParts& make);

}  // namespace firedrill
