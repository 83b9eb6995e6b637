#include "harness/mutants/mutants.h"

#include <algorithm>

#include "engine/base/check.h"

namespace firedrill {
namespace {

void publish_aside(Job& job) { job.checkpoint.mode = PublishMode::async; }

// Training makes some steps while one save is written, and the next save waits for it.
void publish_aside_on_a_slow_disk(Job& job) {
  publish_aside(job);
  job.cluster.file_operation = std::chrono::milliseconds(2);
  job.cluster.file_sync = std::chrono::milliseconds(4);
}

}  // namespace

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = {
      {"async_in_flight_counts", "retention counts the save that waits for the one in flight as the newest checkpoint",
       "validated_is_kept", &make_async_in_flight_counts, &make_async_in_flight_counts_publisher,
       &publish_aside_on_a_slow_disk},
      {"async_late_step", "an asynchronous save reads the step number when training has gone on",
       "resume_equals_golden", nullptr, &make_async_late_step_publisher, &publish_aside},
      {"async_live_state", "an asynchronous save writes the live state, not the snapshot of its dispatch",
       "partial_never_discoverable", nullptr, &make_async_live_state_publisher, &publish_aside_on_a_slow_disk},
      {"async_retired_at_dispatch", "old checkpoints are deleted when an asynchronous save is dispatched",
       "validated_is_kept", &make_async_retired_at_dispatch, &make_async_retired_at_dispatch_publisher, &publish_aside},
      {"optimizer_step_reset", "a resume restores the moments but starts the optimizer's step counter at 0",
       "resume_equals_golden", &make_optimizer_step_reset},
      {"protocol_largest_directory", "a resume takes the shard directory of the largest step, complete or not",
       "partial_never_discoverable", &make_protocol_largest_directory},
      {"protocol_overwrite_in_place", "every checkpoint is written over the one before, in the same directory",
       "validated_is_kept", &make_protocol_overwrite_in_place},
      {"protocol_unsynced_files", "shards and manifest are renamed into place without a sync of the files",
       "partial_never_discoverable", &make_protocol_unsynced_files},
      {"random_state_of_rank_zero", "every rank restores the random state of rank 0", "resume_equals_golden",
       &make_random_state_of_rank_zero},
  };
  return all;
}

const Mutant* find_mutant(std::string_view name) {
  for (const Mutant& mutant : mutants()) {
    if (mutant.name == name) return &mutant;
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

void prepare_job(std::string_view mutant, Job& job) {
  const Mutant* found = mutant.empty() ? nullptr : find_mutant(mutant);
  if (found && found->prepare) found->prepare(job);
}

std::vector<void (*)(Job& job)> job_preparations() {
  std::vector<void (*)(Job & job)> all = {nullptr};
  for (const Mutant& mutant : mutants()) {
    if (std::ranges::find(all, mutant.prepare) == all.end()) all.push_back(mutant.prepare);
  }
  return all;
}

}  // namespace firedrill
