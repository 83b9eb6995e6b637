// Random kills: plans that kill ranks and nodes at drawn places. Every choice comes from the seed, and the scheduler
// gets it too; the same seed gives the same plan.
#pragma once

#include <cstdint>

#include "harness/plan/plan.h"

namespace firedrill {

// `base` gives job, layout and world; its faults are replaced by 1 to 3 kills, of which one in four takes a whole node
// together with what it had not synced. Saves and commits are drawn more often than their share of the time. The
// restart budget is set so that the run can survive them all. A drawn place that the run never reaches does not fire.
Plan random_kills(Plan base, std::uint64_t seed);

}  // namespace firedrill
