// Shrink: from a plan that fails to the simplest one that still fails in the same way. Delta debugging (Zeller and
// Hildebrandt, "Simplifying and isolating failure-inducing input", TSE 2002) over the edits of edits.h: whatever an
// edit gives and still fails is kept, until no edit gives anything more.
//
// Deterministic, unless the bound in time ends it: then it says so. Legal plans stay legal, and plans that a correct
// system survives stay such. Threads: as Session.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "harness/explore/shrink/edits.h"
#include "harness/run/run.h"

namespace firedrill {

// What a run is said to have done wrong: the name of a property that failed, or one of these.
inline constexpr std::string_view failed_liveness = "liveness";
inline constexpr std::string_view failed_check = "a check in the engine";

struct Failure {
  std::string property;
  std::string evidence;
};

// What is wrong with the plan; an empty property: nothing, or nothing that can be told. Runs it in its world. With
// several failed properties `asked` if it is among them, else the first one in the order of reports. Errors: as
// Session::run.
Result<Failure> failure_of(Session& session, const Plan& plan, std::string_view asked = {});
// Whether it fails in this way, among others.
Result<bool> fails_in(Session& session, const Plan& plan, std::string_view property);

struct ShrinkBounds {
  std::int64_t trials_max = 3'000;
  double seconds_max = 60;
};

struct Shrunk {
  Plan plan;
  Failure failure = {};     // of that plan; shrink_by leaves it empty
  std::int64_t trials = 0;  // candidates that were run; with a mutant also runs of the right engine
  double seconds = 0;
  bool complete = false;  // nothing simpler that an edit gives fails; else a bound ended it
};

using StillFails = std::function<Result<bool>(const Plan& candidate)>;

// The search alone. `still_fails` is asked about legal candidates, each once. Errors: those of `still_fails`.
Result<Shrunk> shrink_by(const Plan& failing, const StillFails& still_fails, const ShrinkBounds& bounds = {});

// With a mutant in the plan, the right engine must come through every plan on the way if it comes through the first.
// Errors: as Session::run; invalid_input, if the plan does not fail in this way.
Result<Shrunk> shrink(Session& session, const Plan& failing, std::string_view property,
                      const ShrinkBounds& bounds = {});

// The plan as a scenario that expects this failure. A failed check in the engine cannot be expected: it stays `pass`.
Plan expecting(Plan plan, std::string_view property);
// What stands in front of that scenario: what it was, what it shows, and with which mutant.
std::string words_about(const Plan& before, const Plan& after, const Failure& failure);

}  // namespace firedrill
