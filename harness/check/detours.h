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

}  // namespace firedrill
