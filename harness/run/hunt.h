// Hunt: shows that the checks can fail. A mutant is run against random kills until a property catches it.
#pragma once

#include <cstdint>
#include <string>

#include "harness/run/run.h"

namespace firedrill {

struct Hunt {
  bool caught = false;
  std::string property;     // that failed first; "liveness" if the job never ended
  std::string evidence;     // of the plan that caught it
  std::int64_t trials = 0;  // up to and including the one that caught it
  double seconds = 0.0;
  Plan plan;  // that caught it
};

// `base` gives job and layout. Tries seeds seed, seed + 1, ... up to `trials_max`. Errors: as Session::trial.
Result<Hunt> hunt(Session& session, const Plan& base, std::string_view mutant, std::uint64_t seed,
                  std::int64_t trials_max);

}  // namespace firedrill
