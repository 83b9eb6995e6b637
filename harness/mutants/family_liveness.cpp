#include <array>

#include "harness/mutants/families.h"

namespace firedrill {
namespace {

FaultSpec somewhere(Rng& rng, const Plan& plan, FaultKind kind, Phase phase, std::uint64_t calls) {
  FaultSpec fault{.kind = kind, .may_not_fire = true};
  fault.at.rank = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.layout.world_size())));
  fault.at.step = 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(plan.job.steps)));
  fault.at.phase = phase;
  fault.at.nth = 1 + static_cast<int>(rng.below(calls));
  return fault;
}

// One rank stops, is stuck, or ends by itself, in a step or between its messages.
void silence_a_rank(Rng& rng, Plan& plan) {
  constexpr std::array kinds = {FaultKind::hang, FaultKind::stall, FaultKind::exit};
  const FaultKind kind = kinds[rng.below(kinds.size())];
  const bool in_exchange = rng.chance(1, 2);
  plan.faults = {somewhere(rng, plan, kind, in_exchange ? Phase::exchange : Phase::backward, 6)};
  plan.recovery.budget = 1;
}

void lose_a_node(Rng& rng, Plan& plan) {
  plan.faults = {somewhere(rng, plan, FaultKind::kill_node, Phase::forward, 3)};
  plan.recovery.budget = 1;
}

}  // namespace

std::vector<Mutant> mutants_of_liveness() {
  return {
      {.name = "liveness_blind_in_collectives",
       .summary = "nothing checks liveness while a rank waits in a collective",
       .caught_by = "failure_detected_in_time",
       .make_liveness = &make_liveness_blind_in_collectives,
       .preparation = {.disturb = &silence_a_rank}},
      {.name = "liveness_exit_zero_is_done",
       .summary = "a process that ends with exit code 0 in the middle of the run counts as done",
       .caught_by = "failure_detected_in_time",
       .make_liveness = &make_liveness_exit_zero_is_done,
       .preparation = {.disturb = &silence_a_rank}},
      {.name = "liveness_fixed_deadline",
       .summary = "a save outlasts the deadline of a collective, and healthy ranks are declared dead",
       .caught_by = "failure_detected_in_time",
       .make_liveness = &make_liveness_fixed_deadline,
       .preparation = {.job = "mutants/slow_storage", .layout = Layout{.dp = 4}}},
      {.name = "liveness_of_a_side_task",
       .summary = "the heartbeat comes from a side task while the trainer is stuck",
       .caught_by = "failure_detected_in_time",
       .make_liveness = &make_liveness_of_a_side_task,
       .preparation = {.disturb = &silence_a_rank}},
      {.name = "rendezvous_by_local_count",
       .summary = "the keys of the rendezvous use a restart count that each host keeps by itself",
       .caught_by = "failure_detected_in_time",
       .make_liveness = &make_rendezvous_by_local_count,
       .preparation = {.disturb = &lose_a_node}},
  };
}

}  // namespace firedrill
