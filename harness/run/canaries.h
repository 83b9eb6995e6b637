// Canaries: whether the harness itself still tells what it must. A property that always fails must be reported as
// failed, a planned fault that never fires as a run that cannot be judged, and an engine that is not deterministic as
// an error of the harness. None of them is a mutant: they are neither killed nor do they survive.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/run/run.h"

namespace firedrill {

struct Canary {
  std::string_view name;
  std::string_view expected;  // how it must be reported
  std::string reported;
  std::string evidence;

  bool alive() const { return reported == expected; }
};

// Whether a second run of the plan in the sim world gives the same history as the first. If not, nothing that was found
// with it means anything. Errors: as Session::trial.
Result<bool> repeats(Session& session, const Plan& plan);

// Each by the means that real findings are told with. `base`: its faults are left out. Errors: as Session::trial.
Result<std::vector<Canary>> fly_canaries(Session& session, Plan base);

}  // namespace firedrill
