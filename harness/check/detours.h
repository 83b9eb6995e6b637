// Detours: ranks whose last step went another way than the steps before it, by what their guards told, while others
// went the usual way and wait for them there. Pure.
#pragma once

#include <optional>

#include "harness/check/calls.h"

namespace firedrill {

struct FoundDetour {
  int rank = 0;
  NamedCall call;      // that was due; of a doubled call: that came
  bool again = false;  // it was doubled
  std::string_view came;
};
// Of several the earliest. Not a step of another sort: there the others do not make the call either that was due, or
// the rank makes it later.
std::optional<FoundDetour> first_detour(const AttemptCalls& calls);

// What was due for a rank that gave up in its first step, by the rank that went the same way up to there and on.
// Nothing if nobody did, or if two went on otherwise.
std::optional<NamedCall> due_by_others(const AttemptCalls& calls, int rank, const GivenUp& where);

}  // namespace firedrill
