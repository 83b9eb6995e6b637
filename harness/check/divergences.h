// Divergences: ranks whose calls did not go on in the order of their steps before, while others kept to it and miss
// them there. Pure.
#pragma once

#include <optional>

#include "harness/check/calls.h"

namespace firedrill {

struct FoundDivergence {
  int rank = 0;
  NamedCall call;         // that was due; of a doubled call: that came
  bool again = false;     // it was doubled
  std::string_view came;  // in its place; empty: the step was over
};
// Of several the earliest. Not of a step that is of another kind for others too (it compares replicas, or skips its
// update): of these none is missed, or others diverged alike.
std::optional<FoundDivergence> first_divergence(const AttemptCalls& calls);

}  // namespace firedrill
