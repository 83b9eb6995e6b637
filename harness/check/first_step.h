// First step: ranks that have not made a step of the attempt before cannot know the order of its calls. Others do: the
// ranks of one program (of a stage) make the same calls, each in its own groups. Pure.
#pragma once

#include <optional>

#include "harness/check/calls.h"

namespace firedrill {

// What was due for a rank that gave up, by the rank that went the same way up to there and on. Nothing if nobody did,
// or if two went on otherwise.
std::optional<NamedCall> due_by_others(const AttemptCalls& calls, int rank, const GivenUp& where);

// Where the rank left the way of most others, if this is its first step.
std::optional<Detour> detour_by_others(const AttemptCalls& calls, int rank);

}  // namespace firedrill
