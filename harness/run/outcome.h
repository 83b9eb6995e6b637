// Outcome: what a run came to, from its end and from what the properties say of it: the verdict, its reason, and the
// report.
//
// Pure functions. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "harness/check/property.h"
#include "harness/run/run.h"
#include "harness/world/supervisor.h"

namespace firedrill {

RunVerdict verdict_of(const RunOutcome& outcome, const std::vector<Judged>& judged);
// The first that failed, else the first that is unknown, else nothing.
const Judged* first_bad(const std::vector<Judged>& judged);
// All but what is known outside of the run: its golden, how long it took, where it lies.
RunReport report_of(const Case& run, const RunOutcome& outcome, const std::vector<Judged>& judged);

}  // namespace firedrill
