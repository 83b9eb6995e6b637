#include "harness/mutants/families.h"

namespace firedrill {
namespace {

FaultSpec in_some_step(Rng& rng, const Plan& plan, FaultKind kind, Phase phase) {
  FaultSpec fault{.kind = kind, .at = {.phase = phase}};
  fault.at.rank = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.layout.world_size())));
  fault.at.step = 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(plan.job.steps - 1)));
  return fault;
}

void read_a_bad_sample(Rng& rng, Plan& plan) {
  plan.faults = {in_some_step(rng, plan, FaultKind::bad_sample, Phase::input)};
  plan.recovery.budget = 1;
}

void tell_a_rank_to_leave(Rng& rng, Plan& plan) {
  plan.faults = {in_some_step(rng, plan, FaultKind::preempt, Phase::backward)};
  plan.recovery.budget = 1;
}

}  // namespace

std::vector<Mutant> mutants_of_data() {
  return {
      {.name = "bad_rows_skipped_alone",
       .summary = "a rank that finds its rows damaged skips the step alone, and its exchanges with it",
       .caught_by = "collectives_agree",
       .make_rules = &make_bad_rows_skipped_alone,
       .preparation = {.layout = Layout{.dp = 4, .guard = Guard::record}, .disturb = &read_a_bad_sample}},
      {.name = "sampler_drops_tails",
       .summary = "data is dealt to ranks first, and each drops the uneven end of an epoch",
       .caught_by = "samples_exactly_once",
       .make_rules = &make_sampler_drops_tails,
       .preparation = {.job = "mutants/epochs"}},
      {.name = "sampler_epoch_seed_reset",
       .summary = "a resume takes the rest of a later epoch from the order of the first",
       .caught_by = "samples_exactly_once",
       .make = &make_sampler_epoch_seed_reset,
       .preparation = {.job = "mutants/epochs"}},
      {.name = "sampler_one_batch_behind",
       .summary = "the position in the data is saved before the batch is consumed",
       .caught_by = "samples_exactly_once",
       .make = &make_sampler_one_batch_behind},
      {.name = "window_cut_by_preemption",
       .summary = "a rank that is told to leave closes its accumulation window at once, and forgets the rest",
       .caught_by = "resume_equals_golden",
       .make_rules = &make_window_cut_by_preemption,
       .preparation = {.job = "mutants/epochs", .disturb = &tell_a_rank_to_leave}},
  };
}

}  // namespace firedrill
