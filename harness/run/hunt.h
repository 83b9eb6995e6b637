// Hunt: shows that the checks can fail. A mutant is run against random faults until a property catches it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "harness/run/run.h"

namespace firedrill {

struct Hunt {
  bool caught = false;
  RunVerdict verdict = RunVerdict::pass;  // of the plan that caught it
  std::string property;     // that failed first; "liveness" if the job never ended; may be empty for the right engine
  std::string evidence;     // of the plan that caught it
  std::int64_t trials = 0;  // up to and including the one that caught it
  double seconds = 0.0;
  Plan plan;  // that caught it
};

// What catches a mutant: the first property that failed. A job that never ends catches only a mutant that is `expected`
// to show so ("liveness"); a check of the engine that failed, or a property that is unknown, catches none.
struct Catch {  // views into what was judged
  std::string_view property;
  std::string_view evidence;
};
std::optional<Catch> catch_of(RunVerdict verdict, std::span<const Judged> judged, std::string_view expected);

// `base` gives job and layout; a mutant prepares the job. The right engine (no mutant) is caught by whatever is not a
// pass, and makes a trial with each way in which a mutant prepares the job. Tries `trials_max` seeds: seed, seed + 1,
// ... Errors: as Session::trial.
Result<Hunt> hunt(Session& session, const Plan& base, std::string_view mutant, std::uint64_t seed,
                  std::int64_t trials_max);

}  // namespace firedrill
