// What faults of each kind are drawn with beside their place, and at which places they are beyond any system.
//
// Threads: pure functions.
#pragma once

#include "engine/base/rng.h"
#include "harness/plan/plan.h"

namespace firedrill {

// Sets the options of the kind that say which calls it can be about (target, path); ahead of its place.
void draw_target(Rng& rng, FaultSpec& fault);
// Sets all other options of the kind; behind its place.
void draw_options(Rng& rng, const Plan& plan, FaultSpec& fault);
// Damage where nothing stands in for what is lost: the only checkpoint there is.
bool hits_the_only_checkpoint(const Plan& plan, const FaultSpec& fault);

}  // namespace firedrill
