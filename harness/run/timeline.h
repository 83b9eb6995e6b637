// Time line: a history told attempt by attempt, for reports.
#pragma once

#include <vector>

#include "harness/check/attribution.h"
#include "harness/history/history.h"
#include "harness/report/report.h"

namespace firedrill {

std::vector<AttemptLine> timeline_of(const History& history);
std::vector<FiredFault> fired_in(const History& history);
AttributionLine line_of(const Blame& blame);

}  // namespace firedrill
