// What things cost in the virtual time of a job's cluster.
#pragma once

#include "engine/job/job.h"
#include "engine/sim/cost_table.h"

namespace firedrill {

sim::CostTable costs_of(const Cluster& cluster);

}  // namespace firedrill
