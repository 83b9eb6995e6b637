// First step: ranks that have not made a step of the attempt before cannot know the order of its calls. Others do: the
// ranks of one stage make the same calls, each in its own groups. Pure.
#pragma once

#include <optional>

#include "harness/check/calls.h"

namespace firedrill {

// What was due for a rank that gave up, by those of its stage that made the same calls up to there, and went on.
// Nothing if nobody did, or if two went on otherwise.
std::optional<NamedCall> due_by_others(const AttemptCalls& calls, int rank, const GivenUp& where);

// Where the rank's calls, of its first step, diverged from those of most others of its stage.
std::optional<Divergence> divergence_by_others(const AttemptCalls& calls, int rank);

}  // namespace firedrill
