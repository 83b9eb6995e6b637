// Mutants: deliberately broken engine parts that the properties must catch. One file each, at most 60 lines; each
// is a mistake that real systems have made, as one overridden step of the checkpoint protocol or of the asynchronous
// publisher around it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/ckpt/protocol.h"
#include "engine/train/publisher.h"
#include "engine/train/rules.h"

namespace firedrill {

struct Mutant {
  std::string_view name;
  std::string_view summary;
  std::string_view caught_by;                     // the property that is there for it; another one may see it first
  std::unique_ptr<Protocol> (*make)() = nullptr;  // absent: the right one
  std::unique_ptr<AsyncPublisher> (*make_publisher)() = nullptr;  // absent: the right one
  std::unique_ptr<TrainingRules> (*make_rules)() = nullptr;       // absent: the right ones
  // Makes of a job one in which the mistake can matter, without a change of bits. Absent: any job will do.
  void (*prepare)(Job& job) = nullptr;
};

// In the order of their names.
const std::vector<Mutant>& mutants();
const Mutant* find_mutant(std::string_view name);

// Makes the protocol of a mutant, or the right one for an empty name. The name must be known.
std::unique_ptr<Protocol> make_protocol(std::string_view mutant);
std::unique_ptr<AsyncPublisher> make_publisher(std::string_view mutant);
std::unique_ptr<TrainingRules> make_rules(std::string_view mutant);
// Prepares the job for a mutant; leaves it alone for an empty name.
void prepare_job(std::string_view mutant, Job& job);
// Every way in which a mutant prepares its job, each once, and first none (nullptr): what the right engine must pass.
std::vector<void (*)(Job& job)> job_preparations();

std::unique_ptr<Protocol> make_async_in_flight_counts();
std::unique_ptr<AsyncPublisher> make_async_in_flight_counts_publisher();
std::unique_ptr<AsyncPublisher> make_async_late_step_publisher();
std::unique_ptr<AsyncPublisher> make_async_live_state_publisher();
std::unique_ptr<Protocol> make_async_retired_at_dispatch();
std::unique_ptr<AsyncPublisher> make_async_retired_at_dispatch_publisher();
std::unique_ptr<Protocol> make_optimizer_step_reset();
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
std::unique_ptr<Protocol> make_random_state_of_rank_zero();

}  // namespace firedrill
