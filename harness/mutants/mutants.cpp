#include "harness/mutants/mutants.h"

#include <algorithm>
#include <array>

#include "engine/base/check.h"
#include "harness/mutants/families.h"

namespace firedrill {
namespace {

void publish_aside(Job& job) { job.checkpoint.mode = PublishMode::async; }

// Training makes some steps while one save is written, and the next save waits for it.
// So that nothing stands in for the one that was deleted too early.
void keep_one(Job& job) { job.checkpoint.keep_validated = 1; }

Mutant of_protocol(std::string_view name, std::string_view summary, std::string_view caught_by,
                   std::unique_ptr<Protocol> (*make)(), Preparation preparation = {}) {
  return {.name = name, .summary = summary, .caught_by = caught_by, .make = make, .preparation = preparation};
}

std::vector<Mutant> mutants_of_protocol() {
  return {
      of_protocol("optimizer_step_reset", "a resume restores the moments but starts the optimizer's step counter at 0",
                  "resume_equals_golden", &make_optimizer_step_reset),
      of_protocol("protocol_delete_then_save",
                  "the old checkpoint is deleted before the new one is saved, for want of room", "validated_is_kept",
                  &make_protocol_delete_then_save, {.change = &keep_one}),
      of_protocol("protocol_early_marker",
                  "the commit is made durable before the shards of the other ranks are (marker written early)",
                  "partial_never_discoverable", &make_protocol_early_marker),
      of_protocol("protocol_everybody_prunes", "every rank deletes old checkpoints by itself while others still read",
                  "validated_is_kept", &make_protocol_everybody_prunes),
      of_protocol("protocol_largest_directory",
                  "a resume takes the shard directory of the largest step, complete or not",
                  "partial_never_discoverable", &make_protocol_largest_directory),
      of_protocol("protocol_latest_file",
                  "a text file `latest` is brought up to date after the shards, and nothing is synced",
                  "partial_never_discoverable", &make_protocol_latest_file),
      of_protocol("protocol_manifest_is_enough",
                  "a checkpoint is valid if its manifest is there: sizes and digests are not looked at",
                  "partial_never_discoverable", &make_protocol_manifest_is_enough),
      of_protocol("protocol_metadata_last", "a metadata file is written last and synced, its directory is not",
                  "acknowledged_is_durable", &make_protocol_metadata_last),
      of_protocol("protocol_never_gives_up", "a checkpoint that cannot be restored is chosen again at every restart",
                  "liveness", &make_protocol_never_gives_up),
      of_protocol("protocol_newest_by_time", "the newest checkpoint is the one that was modified last",
                  "acknowledged_is_durable", &make_protocol_newest_by_time),
      of_protocol("protocol_overwrite_in_place",
                  "every checkpoint is written over the one before, in the same directory", "validated_is_kept",
                  &make_protocol_overwrite_in_place),
      of_protocol("protocol_purge_before_commit",
                  "keep-last-k deletes the old checkpoints before the new one is committed", "validated_is_kept",
                  &make_protocol_purge_before_commit, {.change = &keep_one}),
      of_protocol("protocol_rename_unsynced",
                  "files are written aside and renamed into place; neither files nor directories are synced",
                  "acknowledged_is_durable", &make_protocol_rename_unsynced),
      of_protocol("protocol_swallowed_write_error",
                  "a rank that cannot write a shard reports it all the same, and the group commits",
                  "errors_reach_the_job", &make_protocol_swallowed_write_error),
      of_protocol("protocol_sync_again", "a failed sync is tried again on the same file, and then believed",
                  "acknowledged_is_durable", &make_protocol_sync_again),
      of_protocol("protocol_tracker_file",
                  "a tracker file with the number of the iteration is written over at each save",
                  "acknowledged_is_durable", &make_protocol_tracker_file),
      of_protocol("protocol_trusts_the_cache", "a resume trusts what it found in the cache and deletes what is older",
                  "validated_is_kept", &make_protocol_trusts_the_cache),
      of_protocol("protocol_unreadable_is_absent",
                  "a checkpoint that cannot be read counts as absent, and training starts from step 0",
                  "no_silent_restart", &make_protocol_unreadable_is_absent, {.job = "mutants/one_rank"}),
      of_protocol("protocol_unsynced_files", "shards and manifest are renamed into place without a sync of the files",
                  "partial_never_discoverable", &make_protocol_unsynced_files),
      of_protocol("protocol_unsynced_parent", "the manifest is renamed into place, and its directory is not synced",
                  "acknowledged_is_durable", &make_protocol_unsynced_parent),
      of_protocol("random_state_of_rank_zero", "every rank restores the random state of rank 0", "resume_equals_golden",
                  &make_random_state_of_rank_zero),
      of_protocol("scaler_not_saved", "a resume starts the loss scale at its initial value", "resume_equals_golden",
                  &make_scaler_not_saved, {.job = "nano-mixed"}),
  };
}

std::vector<Mutant> mutants_of_publisher() {
  return {
      {.name = "async_in_flight_counts",
       .summary = "retention counts the save that waits for the one in flight as the newest checkpoint",
       .caught_by = "validated_is_kept",
       .make = &make_async_in_flight_counts,
       .make_publisher = &make_async_in_flight_counts_publisher,
       .preparation = {.job = "mutants/slow_storage", .layout = Layout{.dp = 4}, .change = &publish_aside}},
      {.name = "async_late_step",
       .summary = "an asynchronous save reads the step number when training has gone on",
       .caught_by = "resume_equals_golden",
       .make_publisher = &make_async_late_step_publisher,
       .preparation = {.change = &publish_aside}},
      {.name = "async_live_state",
       .summary = "an asynchronous save writes the live state, not the snapshot of its dispatch",
       .caught_by = "partial_never_discoverable",
       .make_publisher = &make_async_live_state_publisher,
       .preparation = {.job = "mutants/slow_storage", .layout = Layout{.dp = 4}, .change = &publish_aside}},
      {.name = "async_retired_at_dispatch",
       .summary = "old checkpoints are deleted when an asynchronous save is dispatched",
       .caught_by = "validated_is_kept",
       .make = &make_async_retired_at_dispatch,
       .make_publisher = &make_async_retired_at_dispatch_publisher,
       .preparation = {.change = &publish_aside}},
  };
}

// A restart on half of the ranks.
Preparation on_fewer_ranks(int zero) {
  return {.layout = Layout{.dp = 4, .zero = zero}, .restarts = Layout{.dp = 2, .zero = zero}};
}

// Experts dealt to two ranks, twice, before and behind the restart. (All on each rank behind it would be refused: names
// are missing.)
Preparation with_experts_dealt() {
  const Layout dealt{.dp = 4, .ep = 2};
  return {.job = "moe-nano", .layout = dealt, .restarts = dealt};
}

std::vector<Mutant> mutants_of_layouts() {
  return {
      {.name = "batch_of_a_rank",
       .summary = "fewer ranks keep the batch of a rank, so the global batch is another one",
       .caught_by = "resume_equals_golden",
       .make_rules = &make_batch_of_a_rank,
       .preparation = on_fewer_ranks(0)},
      {.name = "fused_weight_by_rank",
       .summary = "a fused weight of two parts is put together rank by rank when another tp degree loads it",
       .caught_by = "resume_equals_golden",
       .make = &make_fused_weight_by_rank,
       .preparation = {.job = "nano-hybrid", .layout = Layout{.dp = 2, .tp = 2}, .restarts = Layout{.dp = 2}}},
      {.name = "moments_by_rank",
       .summary = "a rank loads the optimizer's shard of its own number, whatever the dp degree",
       .caught_by = "resume_equals_golden",
       .make = &make_moments_by_rank,
       .preparation = on_fewer_ranks(2)},
      {.name = "norm_of_own_shards",
       .summary = "gradients are clipped by the norm of a rank's own shards, not by that of all of them",
       .caught_by = "resume_equals_golden",
       .make_rules = &make_norm_of_own_shards,
       .preparation = {.job = "mutants/clipped", .layout = Layout{.dp = 4, .zero = 2}}},
  };
}

std::vector<Mutant> mutants_of_training() {
  return {
      {.name = "expert_names_by_rank",
       .summary = "experts are saved under their numbers on the rank, so that those of different ranks collide",
       .caught_by = "resume_equals_golden",
       .make = &make_expert_names_by_rank,
       .preparation = with_experts_dealt()},
      {.name = "overflow_seen_alone",
       .summary = "a rank whose own gradients overflowed skips the update, and the others do not",
       .caught_by = "replicas_agree",
       .make_rules = &make_overflow_seen_alone,
       .preparation = {.job = "nano-mixed", .layout = Layout{.tp = 2, .pp = 2}}},
      {.name = "sampler_by_rank",
       .summary = "samples are dealt to lanes by the number of the rank, whatever the world size",
       .caught_by = "samples_exactly_once",
       .make_rules = &make_sampler_by_rank,
       .preparation = on_fewer_ranks(0)},
      {.name = "tied_on_one_stage",
       .summary = "token weights that the first and the last stage share are updated on the first one only",
       .caught_by = "resume_equals_golden",
       .make_rules = &make_tied_on_one_stage,
       .preparation = {.job = "nano-mixed", .layout = Layout{.dp = 2, .pp = 2}}},
  };
}

// A message of attempt 1 gets lost on its way and comes in attempt 2.
void lose_a_message_for_an_attempt(Rng& rng, Plan& plan) {
  FaultSpec late{.kind = FaultKind::late_message};
  late.at = {.rank = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.layout.world_size()))),
             .step = 2 + static_cast<std::int64_t>(rng.below(4)),
             .phase = Phase::exchange};
  plan.faults = {late};
  plan.recovery.budget = 1;
}

std::vector<Mutant> mutants_of_communication() {
  const Layout watched{.dp = 4, .guard = Guard::record};
  const Layout sharded{.dp = 4, .zero = 2, .guard = Guard::record};
  const Layout experts{.dp = 4, .cp = 2, .guard = Guard::record};
  return {
      {.name = "exchange_in_set_order",
       .summary = "one rank exchanges its gradients in another order than its peers",
       .caught_by = "collectives_agree",
       .make_rules = &make_exchange_in_set_order,
       .preparation = {.layout = sharded}},
      {.name = "idle_expert_leaves",
       .summary = "an expert that got no tokens on a rank is left out of the reduction there",
       .caught_by = "collectives_agree",
       .make_rules = &make_idle_expert_leaves,
       .preparation = {.job = "moe-nano", .layout = experts}},
      {.name = "leaves_the_loop_early",
       .summary = "a rank whose input ends early leaves the loop by itself",
       .caught_by = "collectives_agree",
       .make_rules = &make_leaves_the_loop_early,
       .preparation = {.layout = watched}},
      {.name = "takes_old_messages",
       .summary = "a message of an old attempt that comes late is taken by the new one",
       .caught_by = "nothing_from_an_old_attempt",
       .make_rules = &make_takes_old_messages,
       .preparation = {.layout = watched, .disturb = &lose_a_message_for_an_attempt}},
  };
}

std::vector<Mutant> all_mutants() {
  std::vector<Mutant> all = mutants_of_protocol();
  for (const auto& more :
       {mutants_of_publisher(), mutants_of_layouts(), mutants_of_training(), mutants_of_communication(),
        mutants_of_liveness(), mutants_of_checks(), mutants_of_data(), mutants_of_resume()})
    all.insert(all.end(), more.begin(), more.end());
  std::ranges::sort(all, {}, &Mutant::name);
  return all;
}

}  // namespace

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = all_mutants();
  return all;
}

const std::vector<Mutant>& canary_engines() {
  static const std::vector<Mutant> all = {
      {.name = "canary_nondeterministic",
       .summary = "no two runs of it are alike",
       .caught_by = "the comparison of two runs of one plan",
       .make = &make_canary_nondeterministic},
  };
  return all;
}

const Mutant* find_mutant(std::string_view name) {
  for (const std::vector<Mutant>* list : {&mutants(), &canary_engines()}) {
    const auto found = std::ranges::find(*list, name, &Mutant::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

std::unique_ptr<Protocol> make_protocol(std::string_view mutant) {
  if (mutant.empty()) return std::make_unique<Protocol>();
  const Mutant* found = find_mutant(mutant);
  FD_CHECK(found != nullptr, "no mutant is called {}", mutant);
  return found->make ? found->make() : std::make_unique<Protocol>();
}

std::unique_ptr<AsyncPublisher> make_publisher(std::string_view mutant) {
  const Mutant* found = mutant.empty() ? nullptr : find_mutant(mutant);
  return found && found->make_publisher ? found->make_publisher() : std::make_unique<AsyncPublisher>();
}

std::unique_ptr<TrainingRules> make_rules(std::string_view mutant) {
  const Mutant* found = mutant.empty() ? nullptr : find_mutant(mutant);
  return found && found->make_rules ? found->make_rules() : std::make_unique<TrainingRules>();
}

std::unique_ptr<LivenessRules> make_liveness(std::string_view mutant) {
  const Mutant* found = mutant.empty() ? nullptr : find_mutant(mutant);
  return found && found->make_liveness ? found->make_liveness() : std::make_unique<LivenessRules>();
}

void prepare_job(std::string_view mutant, Job& job) {
  const Mutant* found = mutant.empty() ? nullptr : find_mutant(mutant);
  if (found && found->preparation.change) found->preparation.change(job);
}

std::vector<Preparation> preparations_of(const std::vector<const Mutant*>& list) {
  std::vector<Preparation> all;
  for (const Mutant* mutant : list) {
    if (std::ranges::find(all, mutant->preparation) == all.end()) all.push_back(mutant->preparation);
  }
  return all;
}

}  // namespace firedrill
