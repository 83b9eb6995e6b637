#include "faults/interposer/preload/communicators.h"

#include <pthread.h>

#include <bit>

#include "faults/interposer/preload/process.h"
#include "faults/interposer/preload/real.h"

namespace firedrill::interposer {
namespace {

constexpr std::uint64_t gone = 1;
constexpr int pending_max = 64;

struct Pending {
  ncclComm_t* comm;
  Made made;
};
// Of the thread: groups are.
constinit thread_local Pending pending[pending_max] __attribute__((tls_model("initial-exec"))) = {};
constinit thread_local int pending_count __attribute__((tls_model("initial-exec"))) = 0;

std::uint64_t handle_of(ncclComm_t comm) { return std::bit_cast<std::uint64_t>(comm); }
std::uint64_t first_slot(std::uint64_t handle) { return (handle >> 4) * 0x9e3779b97f4a7c15 >> 32; }

CommSlot* probe(std::uint64_t handle, bool for_adding) {
  CommSlot* comms = process().ring.comms;
  CommSlot* reusable = nullptr;
  for (std::uint64_t i = 0; i < comm_slot_count; ++i) {
    CommSlot* slot = &comms[(first_slot(handle) + i) % comm_slot_count];
    const std::uint64_t found = slot->handle.load(std::memory_order_acquire);
    if (found == handle) return slot;
    if (found == gone && !reusable) reusable = slot;
    if (found == 0) return for_adding ? slot : nullptr;
  }
  return for_adding ? reusable : nullptr;  // what is gone stays readable until the room is needed
}

// A communicator that is still being made answers with an error; then it is asked again at its next call.
void ask_rank_and_size(ncclComm_t comm, CommSlot& slot) {
  static constinit Real<decltype(ncclCommCount)> count_of("ncclCommCount", Library::nccl);
  static constinit Real<decltype(ncclCommUserRank)> rank_of("ncclCommUserRank", Library::nccl);
  const Inside inside;
  int size = 0;
  int rank = 0;
  auto* ask_size = count_of.get();
  auto* ask_rank = rank_of.get();
  if (!ask_size || !ask_rank) return;
  if (ask_size(comm, &size) != ncclSuccess || ask_rank(comm, &rank) != ncclSuccess) return;
  slot.rank.store(rank);
  slot.size.store(size);
  if (slot.global_rank != unknown) return;
  const std::int32_t of_process = process().options->process_rank;
  slot.global_rank = of_process != unknown ? of_process : rank;
}

CommSlot* add(ncclComm_t comm, const Made& made) {
  Process& state = process();
  ::pthread_mutex_lock(&state.making);
  CommSlot* slot = probe(handle_of(comm), true);
  // A found handle means that this one was destroyed out of sight, or that another thread was faster.
  if (slot && (slot->handle.load() != handle_of(comm) || made.by != Op::none)) {
    slot->handle.store(gone);
    slot->id = made.id;
    slot->parent = made.parent;
    slot->rank.store(made.rank);
    slot->size.store(made.size);
    slot->global_rank = made.global_rank;
    slot->made_by = made.by;
    slot->number = state.ring.header->comms.fetch_add(1) + 1;
    slot->calls.store(0);
    slot->collectives.store(0);
    slot->point_to_points.store(0);
    slot->children.store(0);
    slot->async_error.store(ncclSuccess);
    slot->handle.store(handle_of(comm), std::memory_order_release);
  }
  ::pthread_mutex_unlock(&state.making);
  return slot;
}

}  // namespace

CommSlot* known_comm(ncclComm_t comm) noexcept {
  Thread& me = this_thread();
  if (me.last && me.last->handle.load(std::memory_order_acquire) == handle_of(comm)) return me.last;
  CommSlot* slot = handle_of(comm) > gone ? probe(handle_of(comm), false) : nullptr;
  if (slot) me.last = slot;
  return slot;
}

CommSlot* find_comm(ncclComm_t comm) noexcept {
  CommSlot* slot = known_comm(comm);
  if (!slot && handle_of(comm) > gone) slot = add(comm, Made{});
  if (slot && slot->size.load(std::memory_order_relaxed) == unknown) [[unlikely]]
    ask_rank_and_size(comm, *slot);
  return slot;
}

void add_comm(ncclComm_t comm, const Made& made) noexcept {
  if (handle_of(comm) <= gone) return;  // a split without a colour makes none
  CommSlot* slot = add(comm, made);
  if (slot && made.size == unknown) ask_rank_and_size(comm, *slot);
}

void add_comm_after_group(ncclComm_t* comm, const Made& made) noexcept {
  if (pending_count < pending_max) pending[pending_count++] = {comm, made};
}

void add_pending_comms() noexcept {
  const int count = pending_count;
  pending_count = 0;
  for (int i = 0; i < count; ++i) add_comm(*pending[i].comm, pending[i].made);
}

void comm_is_gone(ncclComm_t comm) noexcept {
  if (CommSlot* slot = known_comm(comm)) slot->handle.store(gone, std::memory_order_release);
}

std::uint64_t hash_bytes(const void* bytes, std::size_t size, std::uint64_t seed) noexcept {
  std::uint64_t hash = seed ^ 0xcbf29ce484222325;
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ at[i]) * 0x100000001b3;
  return hash;
}

}  // namespace firedrill::interposer
