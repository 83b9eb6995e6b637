#include "faults/interposer/preload/calls.h"

#include "faults/interposer/preload/communicators.h"
#include "faults/interposer/preload/faults.h"
#include "faults/interposer/preload/held.h"
#include "faults/interposer/preload/process.h"
#include "faults/interposer/preload/real.h"

namespace firedrill::interposer {
namespace {

template <class Function, class... Arguments>
ncclResult_t call_real(Real<Function>& real, Arguments... arguments) {
  Function* function = real.get();
  return function ? function(arguments...) : ncclInvalidUsage;
}

#define FD_REAL(name) static constinit Real<decltype(name)> real(#name, Library::nccl)

ncclResult_t make_broadcast(const Call& c) {
  if (c.old_broadcast) {
    FD_REAL(ncclBcast);
    return call_real(real, c.to, c.count, c.dtype, c.peer, c.comm, c.stream);
  }
  FD_REAL(ncclBroadcast);
  return call_real(real, c.from, c.to, c.count, c.dtype, c.peer, c.comm, c.stream);
}

// Those that NCCL has since 2.28; an older header does not declare them.
using RootedCopy = ncclResult_t(const void*, void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
using Exchange = ncclResult_t(const void*, void*, std::size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
ncclResult_t make_new(const Call& c) {
  static constinit Real<Exchange> all_to_all("ncclAlltoAll", Library::nccl);
  static constinit Real<RootedCopy> gather("ncclGather", Library::nccl);
  static constinit Real<RootedCopy> scatter("ncclScatter", Library::nccl);
  if (c.op == Op::all_to_all) return call_real(all_to_all, c.from, c.to, c.count, c.dtype, c.comm, c.stream);
  return call_real(c.op == Op::gather ? gather : scatter, c.from, c.to, c.count, c.dtype, c.peer, c.comm, c.stream);
}

ncclResult_t make(const Call& c) noexcept {
  const Inside inside;
  switch (c.op) {
    case Op::all_reduce: {
      FD_REAL(ncclAllReduce);
      return call_real(real, c.from, c.to, c.count, c.dtype, c.redop, c.comm, c.stream);
    }
    case Op::broadcast: return make_broadcast(c);
    case Op::reduce: {
      FD_REAL(ncclReduce);
      return call_real(real, c.from, c.to, c.count, c.dtype, c.redop, c.peer, c.comm, c.stream);
    }
    case Op::all_gather: {
      FD_REAL(ncclAllGather);
      return call_real(real, c.from, c.to, c.count, c.dtype, c.comm, c.stream);
    }
    case Op::reduce_scatter: {
      FD_REAL(ncclReduceScatter);
      return call_real(real, c.from, c.to, c.count, c.dtype, c.redop, c.comm, c.stream);
    }
    case Op::all_to_all:
    case Op::gather:
    case Op::scatter: return make_new(c);
    case Op::send: {
      FD_REAL(ncclSend);
      return call_real(real, c.from, c.count, c.dtype, c.peer, c.comm, c.stream);
    }
    case Op::recv: {
      FD_REAL(ncclRecv);
      return call_real(real, c.to, c.count, c.dtype, c.peer, c.comm, c.stream);
    }
    default: return ncclInvalidUsage;
  }
}

bool reduces(Op op) { return op == Op::all_reduce || op == Op::reduce || op == Op::reduce_scatter; }

// Everything that is known before the call; the caller publishes it.
Claim fill(const Numbered& numbered, std::uint64_t sequence, State state, std::uint64_t now) {
  const Claim claimed = claim(process().ring);
  const Thread& me = this_thread();
  const Call& call = numbered.call;
  const CommSlot* comm = numbered.comm;
  RingEntry& entry = *claimed.entry;
  entry.time = now;
  entry.comm = comm ? comm->id : 0;
  entry.call = numbered.number;
  entry.sequence = sequence;
  entry.count = call.count;
  entry.asked = numbered.asked;
  entry.stream = reinterpret_cast<std::uint64_t>(call.stream);
  entry.group = me.group;
  entry.thread = me.id;
  entry.rank = comm ? comm->rank.load(std::memory_order_relaxed) : unknown;
  entry.size = comm ? comm->size.load(std::memory_order_relaxed) : unknown;
  entry.dtype = call.dtype;
  entry.redop = reduces(call.op) ? static_cast<std::int32_t>(call.redop) : unknown;
  entry.peer = call.peer;
  entry.op = call.op;
  entry.event = FaultEvent::none;
  entry.reason = Reason::none;
  entry.fault = numbered.fault;
  entry.state.store(state, std::memory_order_relaxed);
  entry.result.store(0, std::memory_order_relaxed);
  entry.duration.store(0, std::memory_order_relaxed);
  return claimed;
}

void finish(const Claim& claimed, ncclResult_t result, std::uint64_t began) {
  if (!still_there(claimed)) return;  // the ring went round while the call was inside
  claimed.entry->result.store(result, std::memory_order_relaxed);
  claimed.entry->duration.store(monotonic_ns() - began, std::memory_order_relaxed);
  claimed.entry->state.store(State::returned, std::memory_order_release);
}

}  // namespace

ncclResult_t wrapped(const Call& call) noexcept {
  if (this_thread().inside != 0) return make(call);
  start();
  Numbered numbered{.call = call, .comm = find_comm(call.comm), .asked = call.count};
  if (numbered.comm) numbered.number = numbered.comm->calls.fetch_add(1, std::memory_order_relaxed) + 1;
  if (process().active.load(std::memory_order_relaxed) != 0) numbered.fault = fault_for(numbered);
  if (numbered.fault != unknown || call_is_held()) [[unlikely]]
    return disturb(numbered);
  return make_and_record(numbered);
}

ncclResult_t make_and_record(const Numbered& numbered) noexcept {
  std::uint64_t sequence = 0;
  if (CommSlot* comm = numbered.comm) {
    auto& counter = is_point_to_point(numbered.call.op) ? comm->point_to_points : comm->collectives;
    sequence = counter.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  const std::uint64_t began = monotonic_ns();
  const Claim claimed = fill(numbered, sequence, State::entered, began);
  publish(claimed);
  const ncclResult_t result = make(numbered.call);
  finish(claimed, result, began);
  return result;
}

void record_skipped(const Numbered& numbered) noexcept { publish(fill(numbered, 0, State::skipped, monotonic_ns())); }

Event::Event(Op op, const CommSlot* comm, std::uint64_t group) noexcept : began_(monotonic_ns()) {
  Numbered numbered{.call = {.op = op}, .comm = const_cast<CommSlot*>(comm)};
  claim_ = fill(numbered, 0, State::entered, began_);
  claim_.entry->dtype = unknown;
  if (group != 0) claim_.entry->group = group;
  publish(claim_);
}

ncclResult_t Event::done(ncclResult_t result) noexcept {
  finish(claim_, result, began_);
  return result;
}

}  // namespace firedrill::interposer
