// Random faults: plans that kill ranks and nodes and let the storage fail, at drawn places. Every choice comes from the
// seed, and the scheduler gets it too; the same seed gives the same plan.
#pragma once

#include <cstdint>

#include "harness/plan/plan.h"

namespace firedrill {

// random_kills, and in three of four plans one or two faults of the storage or of a clock: errors, failed syncs, writes
// that do not land as they were written, listings and sizes of an earlier time, slow operations, and at most one damage
// at rest, drawn only where two validated checkpoints lie on the disk. Each kind of the sim world is drawn but
// lying_sync, which no system survives together with a power loss. The right engine survives every one of these plans.
Plan random_faults(Plan base, std::uint64_t seed);

}  // namespace firedrill
