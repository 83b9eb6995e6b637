#include <array>

#include "harness/mutants/families.h"

namespace firedrill {
namespace {

std::int64_t drawn_step(Rng& rng, const Job& job) {
  return 2 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(job.steps - 1)));
}

// A payload that comes back from the owner of a sum: in an odd step, where replicas are not compared, a rank that sends
// twice is the owner.
void corrupt_a_payload_behind_the_sum(Rng& rng, Plan& plan) {
  FaultSpec fault{.kind = FaultKind::corrupt_payload};
  fault.at = {.rank = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.layout.world_size()))),
              .step = drawn_step(rng, plan.job) / 2 * 2 - 1,
              .phase = Phase::exchange,
              .nth = 2 + static_cast<int>(rng.below(2))};
  fault.damage = static_cast<PayloadDamage>(rng.below(3));
  fault.may_not_fire = true;
  plan.faults.push_back(fault);
  plan.recovery.budget = 1;
}

// Of what a kernel computed on one rank.
void flip_a_bit(Rng& rng, Plan& plan) {
  constexpr std::array<Phase, 4> phases = {Phase::forward, Phase::backward, Phase::optimizer, Phase::optimizer};
  FaultSpec fault{.kind = FaultKind::bit_flip, .target = static_cast<Target>(rng.below(4))};
  fault.at = {.rank = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.layout.world_size()))),
              .step = drawn_step(rng, plan.job),
              .phase = phases[static_cast<std::size_t>(fault.target)],
              .nth = 1 + static_cast<int>(rng.below(3))};
  fault.may_not_fire = true;
  plan.faults.push_back(fault);
  plan.recovery.budget = 1;
}

}  // namespace

std::vector<Mutant> mutants_of_checks() {
  const Preparation compared = {.layout = Layout{.dp = 4, .replica_check = 2},
                                .disturb = &corrupt_a_payload_behind_the_sum};
  return {
      {.name = "replica_difference_ignored",
       .summary = "replicas are compared, and training goes on when one has drifted away",
       .caught_by = "replicas_agree",
       .make_rules = &make_replica_difference_ignored,
       .preparation = compared},
      {.name = "replicas_compared_behind_the_save",
       .summary = "replicas are compared when the snapshot is published already",
       .caught_by = "replicas_agree",
       .make_rules = &make_replicas_compared_behind_the_save,
       .preparation = compared},
      {.name = "rerun_compares_nothing",
       .summary = "everything is computed twice, and the second result kept without a look at the first",
       .caught_by = "resume_equals_golden",
       .make_rules = &make_rerun_compares_nothing,
       .preparation = {.layout = Layout{.dp = 4, .rerun = true}, .disturb = &flip_a_bit}},
  };
}

}  // namespace firedrill
