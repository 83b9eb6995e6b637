// Budget: which plans are refused before anything runs. mistakes_in_fault finds faults that cannot happen in this job
// and layout; mistakes_in_budget finds plans that no correct system could survive. Pure; every message names the value,
// the field and the remedy, without file and line, which the caller knows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/job/job.h"
#include "engine/job/layout.h"
#include "faults/spec.h"

namespace firedrill {

// A publish is tried three times: an error that fails one try ends nothing by itself.
inline constexpr int tries_a_publish = 3;

// `layout`: that of the attempt the fault is for.
std::vector<std::string> mistakes_in_fault(const FaultSpec& fault, const Job& job, const Layout& layout);
// Under which layout a fault's attempt runs: the first, or from the second attempt on that of restarts where there is
// one; a fault of any attempt is taken to be for the one with more ranks.
const Layout& layout_for(const FaultSpec& fault, const Layout& first, const std::optional<Layout>& restarts);

// More faults for one rank and attempt than an injector holds. Asked of every plan, whatever is expected of it.
std::vector<std::string> mistakes_in_number(const std::vector<FaultSpec>& faults);

// Whether what slows a rank down (slow, slow_disk) stays within the bounds of the watchdog, however its firings fall:
// no call takes longer than cluster.deadline less the heartbeat in which its end is told, and no wait for the rank more
// than patience_in_deadlines of them.
bool slows_within_bound(const FaultSpec& fault, const Job& job);

// How many attempts the faults can end, at most; nothing if there is no bound.
std::optional<int> attempts_ended_at_most(const std::vector<FaultSpec>& faults, const Job& job);

// `restart_budget`: restarts that the recovery policy allows. A validated checkpoint survives every kind of fault of
// this build (kill_node loses unsynced data and names, and what is validated is synced), so what is left to judge is
// that the faults end before the restarts do, and that each attempt that a fault waits for can come: some other fault
// must end those before. A scenario that expects liveness or a failure does not ask.
std::vector<std::string> mistakes_in_budget(const std::vector<FaultSpec>& faults, const Job& job, int restart_budget);

// A computation whose damage makes one replica differ from the others, which replica_check notices.
bool damages_one_replica(const FaultSpec& fault, const Layout& layout);

// Damage of computations and messages that nothing in the layout would notice: the run would go on with wrong numbers.
// A scenario that expects liveness or a failure does not ask.
std::vector<std::string> mistakes_in_cover(const std::vector<FaultSpec>& faults, const Layout& layout);

}  // namespace firedrill
