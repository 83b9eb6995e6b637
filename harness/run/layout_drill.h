// Layout drill: the layouts of a job that are tried against its golden. A pure function of the job.
#pragma once

#include <vector>

#include "engine/job/layout.h"

namespace firedrill {

// Every product of the degrees dp, tp, pp, cp that fits on `ranks_max` ranks, with experts each ep on every grid of dp
// and cp, and of some of them the variants that move other data or in another order: ZeRO stages, sequence parallelism,
// schedules, recompute, buckets, prefetch. The first is one rank.
std::vector<Layout> drill_layouts(const Job& job, int ranks_max = 16);

}  // namespace firedrill
