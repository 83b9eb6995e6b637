// Waits: which ranks of a failed attempt waited for which, and in what calls, by what their guards told. Pure.
#pragma once

#include <optional>
#include <vector>

#include "harness/check/calls.h"

namespace firedrill {

// A call in which ranks wait for members that did not issue it.
struct Waiting {
  const IssuedCall* call = nullptr;  // of one that waits
  std::vector<int> waiting;
  std::vector<int> missing;
};
// Of all tasks of all ranks, the earliest first.
std::vector<Waiting> waits_of(const AttemptCalls& calls);

// The earliest of that place in which the rank is missing, or nullptr.
const Waiting* missed_at(const std::vector<Waiting>& waits, int rank, std::int64_t step, Phase phase, bool aside);

// The call in which a task of the rank waits for a peer, or nullptr.
const IssuedCall* wait_of(const AttemptCalls& calls, int rank, bool aside);

// Whether `rank` has given all that `call` of a peer wants of it.
bool is_past(const AttemptCalls& calls, int rank, const IssuedCall& call);

// Whether `rank` left out the call that others wait in, or those have one too many: it waits itself for the end of an
// earlier call of the stream, which those have put off until behind this one; or it publishes that step.
bool left_out(const AttemptCalls& calls, int rank, const IssuedCall& call);

// Two ranks that each wait for the other in a call that the other never issued.
struct CrossWait {
  int first = 0;
  int other = 0;
  const IssuedCall* of_first = nullptr;
  const IssuedCall* of_other = nullptr;
};
std::optional<CrossWait> cross_wait(const AttemptCalls& calls);

}  // namespace firedrill
