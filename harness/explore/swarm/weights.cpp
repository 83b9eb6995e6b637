#include "harness/explore/swarm/weights.h"

#include <utility>

namespace firedrill {
namespace {

constexpr std::pair<FaultKind, std::uint32_t> defaults[] = {
    // The GPU, its memory, or the host: the rank or the node is gone, or stands still.
    {FaultKind::kill, 24},
    {FaultKind::kill_node, 14},
    {FaultKind::lose_unsynced_data, 3},
    {FaultKind::lose_unsynced_names, 3},
    {FaultKind::hang, 4},
    {FaultKind::stall, 3},
    {FaultKind::slow, 3},
    {FaultKind::preempt, 6},
    {FaultKind::clock_skew, 2},
    // Software.
    {FaultKind::exit, 4},
    {FaultKind::exception, 4},
    {FaultKind::early_abort, 3},
    {FaultKind::reorder_calls, 1},
    {FaultKind::skip_call, 1},
    {FaultKind::duplicate_call, 1},
    {FaultKind::wrong_count, 1},
    {FaultKind::wrong_dtype, 1},
    {FaultKind::wrong_root, 1},
    {FaultKind::wrong_reduce_op, 1},
    {FaultKind::slow_shard, 1},
    {FaultKind::unreadable_shard, 1},
    {FaultKind::shard_ends_early, 1},
    // The network.
    {FaultKind::delay_message, 2},
    {FaultKind::drop_message, 2},
    {FaultKind::duplicate_message, 1},
    {FaultKind::late_message, 1},
    {FaultKind::partition, 2},
    {FaultKind::slow_link, 1},
    {FaultKind::flaky_link, 1},
    // Silent corruption.
    {FaultKind::bit_flip, 2},
    {FaultKind::nan, 1},
    {FaultKind::corrupt_payload, 2},
    {FaultKind::bad_sample, 1},
    // Storage.
    {FaultKind::io_error, 10},
    {FaultKind::no_space, 3},
    {FaultKind::failed_sync, 5},
    {FaultKind::lying_sync, 1},
    {FaultKind::torn_write, 2},
    {FaultKind::dropped_write, 2},
    {FaultKind::short_write, 2},
    {FaultKind::misdirected_write, 2},
    {FaultKind::bit_flip_on_write, 2},
    {FaultKind::bit_flip_at_rest, 5},
    {FaultKind::file_vanishes, 2},
    {FaultKind::stale_listing, 3},
    {FaultKind::stale_stat, 2},
    {FaultKind::late_visibility, 3},
    {FaultKind::slow_disk, 2},
};
static_assert(std::size(defaults) == fault_kind_count);

// By Phase: none, input, forward, backward, exchange, optimizer, save, commit, validate, retire, find, restore,
// rendezvous.
constexpr PhaseWeights by_phase = {0, 1, 2, 2, 3, 2, 8, 8, 6, 6, 4, 4, 1};

}  // namespace

KindWeights weights_of(const std::vector<KindWeight>& own, WorldKind world) {
  KindWeights weights{};
  for (const auto& [kind, weight] : defaults) weights[static_cast<std::size_t>(kind)] = weight;
  for (const KindWeight& each : own) weights[static_cast<std::size_t>(each.kind)] = each.weight;
  for (const FaultKindInfo& info : fault_kinds()) {
    if (world == WorldKind::process && !info.in_process_world) weights[static_cast<std::size_t>(info.kind)] = 0;
  }
  return weights;
}

const PhaseWeights& phase_weights() { return by_phase; }

}  // namespace firedrill
