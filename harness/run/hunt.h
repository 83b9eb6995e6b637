// Hunt: shows that the checks can fail. A mutant is run against random faults until a property catches it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/mutants/mutants.h"
#include "harness/run/run.h"

namespace firedrill {

struct Hunt {
  bool caught = false;
  RunVerdict verdict = RunVerdict::pass;  // of the plan that caught it
  std::string property;     // that failed first; "liveness" if the job never ended; may be empty for the right engine
  std::string evidence;     // of the plan that caught it
  std::int64_t trials = 0;  // up to and including the one that caught it
  double seconds = 0.0;
  std::uint64_t seed = 0;  // with which a hunt catches it in its first trial
  Plan plan;               // that caught it
};

// What catches a mutant: the first property that failed. A job that never ends catches only a mutant that is `expected`
// to show so ("liveness"); a check of the engine that failed, or a property that is unknown, catches none.
struct Catch {  // views into what was judged
  std::string_view property;
  std::string_view evidence;
};
std::optional<Catch> catch_of(RunVerdict verdict, std::span<const Judged> judged, std::string_view expected);

// Where a mutant is hunted: job and layouts, and how plans are drawn.
struct Ground {
  Plan base;
  void (*disturb)(Rng& rng, Plan& plan) = nullptr;  // draws the faults; absent: `draw`
  // Draws a whole plan in place of that. Absent: random_faults.
  std::function<Result<Plan>(Session& session, std::uint64_t seed)> draw = {};
};

// `base` as the preparation wants it. A job that it names is read from the folder `jobs`, with the job settings that
// the base was made with. Errors: invalid_input, if that job is not there or not right, or a layout does not fit it.
Result<Ground> ground_for(const Preparation& preparation, const Plan& base, const std::filesystem::path& jobs);
// One for each preparation of the mutants, and first the base itself: what the right engine must survive.
Result<std::vector<Ground>> grounds_for(const std::vector<const Mutant*>& mutants, const Plan& base,
                                        const std::filesystem::path& jobs);

// Tries `trials_max` seeds: seed, seed + 1, ... on every ground. The right engine (no mutant) is caught by whatever is
// not a pass; a mutant is not caught by a plan that catches the right engine too. The session keeps the history of the
// plan that caught it. Errors: as Session::trial.
Result<Hunt> hunt(Session& session, const std::vector<Ground>& grounds, std::string_view mutant, std::uint64_t seed,
                  std::int64_t trials_max);

}  // namespace firedrill
