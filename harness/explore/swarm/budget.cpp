// What a drawn plan needs so that a right engine survives it.
#include <algorithm>

#include "faults/budget.h"
#include "harness/explore/swarm/options.h"
#include "harness/explore/swarm/swarm.h"

namespace firedrill {
namespace {

bool loses_a_node(const FaultSpec& fault) {
  return fault.kind == FaultKind::kill_node || fault.kind == FaultKind::lose_unsynced_data ||
         fault.kind == FaultKind::lose_unsynced_names;
}

int nodes_of(const Job& job, const Layout& layout) { return node_of(job, layout.world_size() - 1) + 1; }

// Reads that fail in the search for a checkpoint: a second one confirms the first, if no other rank can look.
bool fails_twice_in_find(const Plan& plan) {
  int times = 0;
  for (const FaultSpec& fault : plan.faults) {
    if (fault.kind == FaultKind::io_error && fault.at.phase == Phase::find) times += fault.times == 0 ? 2 : fault.times;
  }
  return times >= 2;
}

bool may_hit_an_only_rank(const Plan& plan, const FaultSpec& fault) {
  if (fault.at.attempt) return plan.layout_of(*fault.at.attempt).world_size() == 1;
  return plan.layout.world_size() == 1 || (plan.recovery.layout && plan.recovery.layout->world_size() == 1);
}

// Nobody else sees what the only rank of an attempt does not see or cannot read.
bool blinds_the_only_rank(const Plan& plan, const FaultSpec& fault) {
  const bool hides = fault.kind == FaultKind::stale_listing || fault.kind == FaultKind::late_visibility ||
                     (fault.kind == FaultKind::io_error && fails_twice_in_find(plan));
  return hides && fault.at.phase == Phase::find && may_hit_an_only_rank(plan, fault);
}

bool is_same_call(const FaultSpec& a, const FaultSpec& b) {
  return a.kind == b.kind && a.at.attempt == b.at.attempt && a.at.step == b.at.step && a.at.phase == b.at.phase &&
         a.at.nth == b.at.nth;
}

// All members of a group leave out the same call, or reduce by the same wrong operation: they agree about it, and
// nothing is missing. Which group the call is of is not known here, so that a plan in which others could tell counts
// too; and members that made other numbers of calls in the phase are not seen to be at one.
bool misleads_all_members(const Plan& plan, const FaultSpec& fault) {
  if (fault.kind != FaultKind::skip_call && fault.kind != FaultKind::wrong_reduce_op) return false;
  const Layout& layout = plan.layout_of(fault.at.attempt.value_or(1));
  if (fault.at.rank >= layout.world_size()) return false;
  const auto is_misled = [&](int rank) {
    return std::ranges::any_of(
        plan.faults, [&](const FaultSpec& other) { return other.at.rank == rank && is_same_call(other, fault); });
  };
  const Groups groups = groups_of(plan.job, layout, fault.at.rank);
  const auto misled = [&](const Group& group) {
    return group.size() > 1 && std::ranges::all_of(group.ranks, is_misled);
  };
  return misled(groups.world) || misled(groups.dp) || misled(groups.tp) || misled(groups.cp) || misled(groups.pp) ||
         misled(groups.model) || misled(groups.ep) || misled(groups.expert_cp) || misled(groups.expert_dp) ||
         misled(groups.tied);
}

void add_missing_nodes(const Plan& plan, std::vector<std::string>& reasons) {
  const auto lost = static_cast<int>(std::ranges::count_if(plan.faults, loses_a_node));
  const RecoverySpec& recovery = plan.recovery;
  if (recovery.policy == RecoveryPolicy::spare && recovery.spares < lost) {
    reasons.emplace_back("more nodes are lost than there are spares");
  }
  if (recovery.policy == RecoveryPolicy::fewer &&
      nodes_of(plan.job, *recovery.layout) + lost > nodes_of(plan.job, plan.layout)) {
    reasons.emplace_back("too few nodes are left");
  }
}

}  // namespace

void cover_damage(Plan& plan) {
  for (const FaultSpec& fault : plan.faults) {
    const bool compute = fault.kind == FaultKind::bit_flip || fault.kind == FaultKind::nan;
    const bool calls = info_of(fault.kind).harm == Harm::call || fault.kind == FaultKind::corrupt_payload;
    for (Layout* layout : {&plan.layout, plan.recovery.layout ? &*plan.recovery.layout : nullptr}) {
      if (layout == nullptr) continue;
      const bool compared =
          layout->replica_check > 0 && damages_one_replica(fault, *layout) && plan.job.model.experts == 0;
      if (compute && !compared) layout->rerun = true;
      if (calls) layout->guard = Guard::check;
    }
  }
}

int restarts_for(const Plan& plan) {
  return attempts_ended_at_most(plan.faults, plan.job).value_or(static_cast<int>(plan.faults.size()));
}

std::vector<std::string> beyond_budget(const Plan& plan) {
  std::vector<std::string> reasons = mistakes_in_budget(plan.faults, plan.job, plan.recovery.budget);
  for (const Layout* layout : {&plan.layout, plan.recovery.layout ? &*plan.recovery.layout : nullptr}) {
    if (layout == nullptr) continue;
    for (std::string& reason : mistakes_in_cover(plan.faults, *layout)) reasons.push_back(std::move(reason));
  }
  for (std::string& reason : mistakes_in_number(plan.faults)) reasons.push_back(std::move(reason));
  for (const FaultSpec& fault : plan.faults) {
    if (hits_the_only_checkpoint(plan, fault)) reasons.emplace_back("the only checkpoint may be damaged");
    if (blinds_the_only_rank(plan, fault)) reasons.emplace_back("a checkpoint may be hidden from the only rank");
    if (misleads_all_members(plan, fault)) reasons.emplace_back("all members of a group may agree on a wrong call");
  }
  add_missing_nodes(plan, reasons);
  return reasons;
}

}  // namespace firedrill
