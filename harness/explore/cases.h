// Cases: the traces that a scenario's crash section asks to explore: the run as it is, or the run with a kill behind
// each of its operations. A fault that neither a trace nor the oracle can tell of is refused, not explored wrongly.
//
// Pure but for the runs that are recorded. Errors: invalid_input (a crash section beyond the run, a trace of another
// run: a mistake of the caller's), unavailable (a run that did not get to its end), those of the world.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/explore/subject.h"
#include "harness/explore/unread.h"

namespace firedrill {

// What explores one trace.
struct CrashCase {
  crash::Trace trace;
  std::vector<crash::OperationId> certain;
  int attempts = 1;  // that the trace holds
  std::optional<CheckpointId> required = {};
  Unread unread = {};  // of the base
};

struct CrashCases {
  std::vector<CrashCase> cases;
  crash::Trace recorded;       // the run without kills, as it was recorded; it names its owner
  std::size_t kills_late = 0;  // kills that hit nothing any more, and make no case
};

// Why the plan's faults cannot be judged here, one line for each, with place and remedy; empty: they can.
std::vector<std::string> refusals_for_crashcheck(const Plan& plan);

// Whose trace it is: the same for the same plan (however its settings and paths were written) and crash section.
std::string trace_owner(const Plan& plan, const CrashSpec& spec);

// `kept`: CrashCases::recorded of an earlier time, in place of a new run.
Result<CrashCases> cases_of(const ExploreSubject& subject, const CrashSpec& spec,
                            const std::optional<crash::Trace>& kept,
                            const std::function<void(std::string_view)>& progress);

}  // namespace firedrill
