// Mutants: deliberately broken engine parts that the properties must catch. One file each, at most 60 lines; each
// is a mistake that real systems have made, as one overridden step of the checkpoint protocol, of the asynchronous
// publisher around it, of the rules of training, or of those of the watchdog.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/rng.h"
#include "engine/ckpt/protocol.h"
#include "engine/comm/liveness.h"
#include "engine/train/publisher.h"
#include "engine/train/rules.h"
#include "harness/plan/plan.h"

namespace firedrill {

// Where a mistake matters: the job, which every hunt needs, and what lets a short hunt (`mutants --prepared`) do
// without drawn layouts and faults. What is absent is as the hunt's own scenario says. The right engine must survive
// the same hunt under each.
struct Preparation {
  std::string_view job = {};            // "nano-hybrid": a job of scenarios/jobs, by its file's name
  std::optional<Layout> layout = {};    // of the first attempt
  std::optional<Layout> restarts = {};  // of the attempts behind it
  void (*change)(Job& job) = nullptr;   // of fields that change no bits, or the golden is recorded anew each time
  // Draws the faults of a plan, and sets the budget that survives them. Absent: random faults, with a kill at least.
  void (*disturb)(Rng& rng, Plan& plan) = nullptr;

  bool operator==(const Preparation&) const = default;
};

struct Mutant {
  std::string_view name;
  std::string_view summary;
  std::string_view caught_by;                     // the property that is there for it; another one may see it first
  std::unique_ptr<Protocol> (*make)() = nullptr;  // absent: the right one
  std::unique_ptr<AsyncPublisher> (*make_publisher)() = nullptr;  // absent: the right one
  std::unique_ptr<TrainingRules> (*make_rules)() = nullptr;       // absent: the right ones
  std::unique_ptr<LivenessRules> (*make_liveness)() = nullptr;    // absent: the right ones
  Preparation preparation = {};
};

// In the order of their names.
const std::vector<Mutant>& mutants();
// Engine parts that no property is there to catch, but the harness itself: each must be told for what it is.
const std::vector<Mutant>& canary_engines();
// Among both.
const Mutant* find_mutant(std::string_view name);

// Makes the protocol of a mutant, or the right one for an empty name. The name must be known.
std::unique_ptr<Protocol> make_protocol(std::string_view mutant);
std::unique_ptr<AsyncPublisher> make_publisher(std::string_view mutant);
std::unique_ptr<TrainingRules> make_rules(std::string_view mutant);
std::unique_ptr<LivenessRules> make_liveness(std::string_view mutant);
// What a mutant changes in the job that a scenario gives; leaves it alone for an empty name.
void prepare_job(std::string_view mutant, Job& job);
// Every preparation of these mutants, each once.
std::vector<Preparation> preparations_of(const std::vector<const Mutant*>& list);

std::unique_ptr<Protocol> make_async_in_flight_counts();
std::unique_ptr<AsyncPublisher> make_async_in_flight_counts_publisher();
std::unique_ptr<AsyncPublisher> make_async_late_step_publisher();
std::unique_ptr<AsyncPublisher> make_async_live_state_publisher();
std::unique_ptr<Protocol> make_async_retired_at_dispatch();
std::unique_ptr<AsyncPublisher> make_async_retired_at_dispatch_publisher();
std::unique_ptr<TrainingRules> make_bad_rows_skipped_alone();
std::unique_ptr<TrainingRules> make_batch_of_a_rank();
std::unique_ptr<TrainingRules> make_exchange_in_set_order();
std::unique_ptr<Protocol> make_expert_names_by_rank();
std::unique_ptr<Protocol> make_fused_weight_by_rank();
std::unique_ptr<TrainingRules> make_idle_expert_leaves();
std::unique_ptr<TrainingRules> make_leaves_the_loop_early();
std::unique_ptr<Protocol> make_canary_nondeterministic();
std::unique_ptr<LivenessRules> make_liveness_blind_in_collectives();
std::unique_ptr<LivenessRules> make_liveness_exit_zero_is_done();
std::unique_ptr<LivenessRules> make_liveness_fixed_deadline();
std::unique_ptr<LivenessRules> make_liveness_of_a_side_task();
std::unique_ptr<Protocol> make_masters_from_half();
std::unique_ptr<Protocol> make_moments_by_rank();
std::unique_ptr<Protocol> make_moments_not_saved();
std::unique_ptr<TrainingRules> make_norm_of_own_shards();
std::unique_ptr<Protocol> make_optimizer_step_reset();
std::unique_ptr<TrainingRules> make_overflow_seen_alone();
std::unique_ptr<Protocol> make_protocol_delete_then_save();
std::unique_ptr<Protocol> make_protocol_early_marker();
std::unique_ptr<Protocol> make_protocol_everybody_prunes();
std::unique_ptr<Protocol> make_protocol_largest_directory();
std::unique_ptr<Protocol> make_protocol_latest_file();
std::unique_ptr<Protocol> make_protocol_manifest_is_enough();
std::unique_ptr<Protocol> make_protocol_metadata_last();
std::unique_ptr<Protocol> make_protocol_never_gives_up();
std::unique_ptr<Protocol> make_protocol_newest_by_time();
std::unique_ptr<Protocol> make_protocol_overwrite_in_place();
std::unique_ptr<Protocol> make_protocol_purge_before_commit();
std::unique_ptr<Protocol> make_protocol_rename_unsynced();
std::unique_ptr<Protocol> make_protocol_swallowed_write_error();
std::unique_ptr<Protocol> make_protocol_sync_again();
std::unique_ptr<Protocol> make_protocol_tracker_file();
std::unique_ptr<Protocol> make_protocol_trusts_the_cache();
std::unique_ptr<Protocol> make_protocol_unreadable_is_absent();
std::unique_ptr<Protocol> make_protocol_unsynced_files();
std::unique_ptr<Protocol> make_protocol_unsynced_parent();
std::unique_ptr<Protocol> make_publish_reads_nothing_back();
std::unique_ptr<Protocol> make_random_counters_reset();
std::unique_ptr<Protocol> make_random_state_of_rank_zero();
std::unique_ptr<LivenessRules> make_rendezvous_by_local_count();
std::unique_ptr<TrainingRules> make_replica_difference_ignored();
std::unique_ptr<TrainingRules> make_replicas_compared_behind_the_save();
std::unique_ptr<TrainingRules> make_rerun_compares_nothing();
std::unique_ptr<Protocol> make_resume_by_own_listing();
std::unique_ptr<Protocol> make_resume_checks_sizes_only();
std::unique_ptr<Protocol> make_resume_sorts_names();
std::unique_ptr<Protocol> make_retention_sorts_names();
std::unique_ptr<TrainingRules> make_sampler_by_rank();
std::unique_ptr<TrainingRules> make_sampler_drops_tails();
std::unique_ptr<Protocol> make_sampler_epoch_seed_reset();
std::unique_ptr<Protocol> make_sampler_one_batch_behind();
std::unique_ptr<Protocol> make_scaler_growth_reset();
std::unique_ptr<Protocol> make_scaler_not_saved();
std::unique_ptr<Protocol> make_schedule_one_step_behind();
std::unique_ptr<TrainingRules> make_takes_old_messages();
std::unique_ptr<TrainingRules> make_tied_on_one_stage();
std::unique_ptr<TrainingRules> make_window_cut_by_preemption();

}  // namespace firedrill
