#include "harness/mutants/families.h"

namespace firedrill {
namespace {

// One rank's disk shows it an old listing when it looks for a checkpoint, behind a kill.
void show_an_old_listing(Rng& rng, Plan& plan) {
  const auto any_rank = [&] {
    return static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.layout.world_size())));
  };
  FaultSpec kill{.at = {.rank = any_rank(), .phase = Phase::forward}};
  kill.at.step = 5 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(plan.job.steps - 4)));
  FaultSpec stale{.kind = FaultKind::stale_listing, .at = {.attempt = 2, .rank = any_rank(), .phase = Phase::find}};
  stale.at.nth = 1 + static_cast<int>(rng.below(5));
  stale.may_not_fire = true;
  plan.faults = {kill, stale};
  plan.recovery.budget = 2;
}

Mutant of_resume(std::string_view name, std::string_view summary, std::unique_ptr<Protocol> (*make)(),
                 std::string_view caught_by = "resume_equals_golden", Preparation preparation = {}) {
  return {.name = name, .summary = summary, .caught_by = caught_by, .make = make, .preparation = preparation};
}

}  // namespace

std::vector<Mutant> mutants_of_resume() {
  return {
      of_resume("masters_from_half", "a resume makes the fp32 masters from the 16-bit weights", &make_masters_from_half,
                "resume_equals_golden", {.job = "nano-mixed"}),
      of_resume("moments_not_saved", "a resume begins with the optimizer's moments at zero", &make_moments_not_saved),
      of_resume("publish_reads_nothing_back", "a checkpoint is validated without being read back",
                &make_publish_reads_nothing_back, "acknowledged_is_durable"),
      of_resume("random_counters_reset", "a resume draws the first dropout masks again", &make_random_counters_reset),
      of_resume("resume_by_own_listing", "every rank decides by its own listing which checkpoint to load",
                &make_resume_by_own_listing, "ranks_restore_the_same", {.disturb = &show_an_old_listing}),
      of_resume("resume_checks_sizes_only", "a checkpoint is whole if its files have the right sizes",
                &make_resume_checks_sizes_only, "partial_never_discoverable"),
      of_resume("resume_sorts_names", "the newest checkpoint is the last name in the order of text: 8 comes behind 10",
                &make_resume_sorts_names, "acknowledged_is_durable"),
      of_resume("retention_sorts_names", "retention deletes by the order of names as text: 10 is older than 8",
                &make_retention_sorts_names, "validated_is_kept"),
      of_resume("scaler_growth_reset", "a resume forgets how many good steps the loss scaler has counted",
                &make_scaler_growth_reset, "resume_equals_golden", {.job = "nano-mixed"}),
      of_resume("schedule_one_step_behind", "the learning rate is saved before the scheduler makes its step",
                &make_schedule_one_step_behind),
  };
}

}  // namespace firedrill
