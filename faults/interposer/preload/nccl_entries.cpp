// The wrapped functions of NCCL. Each hands over to calls.h or communicators.h; none throws, none allocates.
#include "faults/interposer/preload/calls.h"
#include "faults/interposer/preload/communicators.h"
#include "faults/interposer/preload/held.h"
#include "faults/interposer/preload/process.h"
#include "faults/interposer/preload/real.h"

using namespace firedrill::interposer;  // allowed: C entry points cannot lie in a namespace

#define FD_EXPORT extern "C" __attribute__((visibility("default")))
#define FD_REAL(name) static constinit Real<decltype(name)> real(#name, Library::nccl)

namespace {

// Calls the real function where only that is to be done: NCCL's own calls, and functions that are not there.
template <class Function, class... Arguments>
ncclResult_t plain(Real<Function>& real, Arguments... arguments) {
  Function* function = real.get();
  const Inside inside;
  return function ? function(arguments...) : ncclInvalidUsage;
}

bool is_inner() { return this_thread().inside != 0; }

// An event around the real function; a call that is kept back goes first.
template <class Function, class... Arguments>
ncclResult_t recorded(Op op, const CommSlot* comm, Real<Function>& real, Arguments... arguments) {
  release_held_call(Reason::other_communicator, to_string(op).data());
  Event event(op, comm);
  return event.done(plain(real, arguments...));
}

ncclResult_t enter_made(ncclComm_t* comm, const Made& made, ncclResult_t result) {
  if (result != ncclSuccess && result != ncclInProgress) return result;
  if (this_thread().group_depth > 0) {
    add_comm_after_group(comm, made);
  } else {
    add_comm(*comm, made);
  }
  return result;
}

Made from_id(const ncclUniqueId& id, int ranks, int rank) {
  const std::int32_t of_process = process().options->process_rank;
  return {.id = hash_bytes(&id, sizeof id, 0),
          .rank = rank,
          .size = ranks,
          .global_rank = of_process != unknown ? of_process : rank,
          .by = Op::comm_init};
}

// All ranks of the parent make its children in the same order, so the number of the child names it on all of them.
Made child_of(ncclComm_t parent, Op by, const void* bytes, std::size_t size) {
  CommSlot* slot = find_comm(parent);
  if (!slot) return {.by = by};
  const std::uint64_t seed = slot->id + 0x9e3779b97f4a7c15 * (slot->children.fetch_add(1) + 1);
  return {.id = hash_bytes(bytes, size, seed), .parent = slot->id, .global_rank = slot->global_rank, .by = by};
}

}  // namespace

FD_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  FD_REAL(ncclCommInitRank);
  if (is_inner()) return plain(real, comm, ranks, id, rank);
  start();
  return enter_made(comm, from_id(id, ranks, rank), recorded(Op::comm_init, nullptr, real, comm, ranks, id, rank));
}

FD_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                              ncclConfig_t* config) {
  FD_REAL(ncclCommInitRankConfig);
  if (is_inner()) return plain(real, comm, ranks, id, rank, config);
  start();
  return enter_made(comm, from_id(id, ranks, rank),
                    recorded(Op::comm_init, nullptr, real, comm, ranks, id, rank, config));
}

FD_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int id_count, ncclUniqueId* ids,
                                                ncclConfig_t* config) {
  FD_REAL(ncclCommInitRankScalable);
  if (is_inner()) return plain(real, comm, ranks, rank, id_count, ids, config);
  start();
  return enter_made(comm, from_id(*ids, ranks, rank),
                    recorded(Op::comm_init, nullptr, real, comm, ranks, rank, id_count, ids, config));
}

// One process has all the ranks, so the rank of each is that of its communicator.
FD_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices, const int* list) {
  FD_REAL(ncclCommInitAll);
  if (is_inner()) return plain(real, comms, devices, list);
  start();
  const ncclResult_t result = recorded(Op::comm_init_all, nullptr, real, comms, devices, list);
  if (result != ncclSuccess && result != ncclInProgress) return result;
  const RingHeader& header = *process().ring.header;
  const std::uint64_t own[] = {static_cast<std::uint64_t>(header.pid), header.started, process().cliques.fetch_add(1)};
  const std::uint64_t id = hash_bytes(own, sizeof own, 1);
  for (int i = 0; i < devices; ++i) {
    add_comm(comms[i], {.id = id, .rank = i, .size = devices, .global_rank = i, .by = Op::comm_init_all});
  }
  return result;
}

FD_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  FD_REAL(ncclCommSplit);
  if (is_inner()) return plain(real, comm, color, key, made, config);
  start();
  const Made child = child_of(comm, Op::comm_split, &color, sizeof color);
  return enter_made(made, child, recorded(Op::comm_split, known_comm(comm), real, comm, color, key, made, config));
}

FD_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int excluded_count, ncclComm_t* made,
                                      ncclConfig_t* config, int flags) {
  static constinit Real<ncclResult_t(ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int)> real("ncclCommShrink",
                                                                                                   Library::nccl);
  if (is_inner()) return plain(real, comm, excluded, excluded_count, made, config, flags);
  start();
  const auto bytes = static_cast<std::size_t>(excluded_count > 0 ? excluded_count : 0) * sizeof(int);
  const Made child = child_of(comm, Op::comm_shrink, excluded, bytes);
  return enter_made(
      made, child,
      recorded(Op::comm_shrink, known_comm(comm), real, comm, excluded, excluded_count, made, config, flags));
}

FD_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  FD_REAL(ncclCommFinalize);
  if (is_inner()) return plain(real, comm);
  start();
  return recorded(Op::comm_finalize, find_comm(comm), real, comm);
}

// What ends a communicator takes it out of the table first: another thread may get its handle as soon as it is free.
template <class Function>
static ncclResult_t end_comm(Op op, ncclComm_t comm, Real<Function>& real) {
  start();
  release_held_call(Reason::other_communicator, to_string(op).data());
  Event event(op, find_comm(comm));
  comm_is_gone(comm);
  return event.done(plain(real, comm));
}

FD_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  FD_REAL(ncclCommDestroy);
  return is_inner() ? plain(real, comm) : end_comm(Op::comm_destroy, comm, real);
}

FD_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  FD_REAL(ncclCommAbort);
  return is_inner() ? plain(real, comm) : end_comm(Op::comm_abort, comm, real);
}

FD_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  static constinit Real<ncclResult_t(ncclComm_t, int)> real("ncclCommRevoke", Library::nccl);
  if (is_inner()) return plain(real, comm, flags);
  start();
  return recorded(Op::comm_revoke, find_comm(comm), real, comm, flags);
}

// Watchers ask this all the time: only a changed answer is recorded.
FD_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  FD_REAL(ncclCommGetAsyncError);
  if (is_inner()) return plain(real, comm, error);
  start();
  if (call_is_held()) program_asks();
  const ncclResult_t result = plain(real, comm, error);
  if (result != ncclSuccess || !error) return result;
  CommSlot* slot = known_comm(comm);
  if (slot && slot->async_error.exchange(*error) != *error) Event(Op::async_error, slot).done(*error);
  return result;
}

FD_EXPORT ncclResult_t ncclGroupStart() {
  FD_REAL(ncclGroupStart);
  if (is_inner()) return plain(real);
  start();
  Thread& me = this_thread();
  group_boundary(true);
  const std::uint64_t group = me.group_depth == 0 ? process().groups.fetch_add(1) + 1 : me.group;
  Event event(Op::group_start, nullptr, group);
  const ncclResult_t result = event.done(plain(real));
  if (result != ncclSuccess) return result;
  ++me.group_depth;
  me.group = group;
  return result;
}

FD_EXPORT ncclResult_t ncclGroupEnd() {
  FD_REAL(ncclGroupEnd);
  if (is_inner()) return plain(real);
  start();
  Thread& me = this_thread();
  group_boundary(false);
  Event event(Op::group_end, nullptr, me.group);
  const ncclResult_t result = event.done(plain(real));
  if (me.group_depth > 0 && --me.group_depth > 0) return result;
  me.group = 0;
  add_pending_comms();
  return result;
}

FD_EXPORT ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t dtype, ncclRedOp_t redop,
                                     ncclComm_t comm, cudaStream_t stream) {
  return wrapped({Op::all_reduce, from, to, count, dtype, redop, unknown, comm, stream});
}

FD_EXPORT ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t dtype, int root,
                                     ncclComm_t comm, cudaStream_t stream) {
  return wrapped({Op::broadcast, from, to, count, dtype, ncclSum, root, comm, stream});
}

FD_EXPORT ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t dtype, int root, ncclComm_t comm,
                                 cudaStream_t stream) {
  return wrapped({Op::broadcast, buffer, buffer, count, dtype, ncclSum, root, comm, stream, true});
}

FD_EXPORT ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t dtype, ncclRedOp_t redop,
                                  int root, ncclComm_t comm, cudaStream_t stream) {
  return wrapped({Op::reduce, from, to, count, dtype, redop, root, comm, stream});
}

FD_EXPORT ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t dtype, ncclComm_t comm,
                                     cudaStream_t stream) {
  return wrapped({Op::all_gather, from, to, count, dtype, ncclSum, unknown, comm, stream});
}

FD_EXPORT ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t dtype,
                                         ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream) {
  return wrapped({Op::reduce_scatter, from, to, count, dtype, redop, unknown, comm, stream});
}

FD_EXPORT ncclResult_t ncclAlltoAll(const void* from, void* to, size_t count, ncclDataType_t dtype, ncclComm_t comm,
                                    cudaStream_t stream) {
  return wrapped({Op::all_to_all, from, to, count, dtype, ncclSum, unknown, comm, stream});
}

FD_EXPORT ncclResult_t ncclGather(const void* from, void* to, size_t count, ncclDataType_t dtype, int root,
                                  ncclComm_t comm, cudaStream_t stream) {
  return wrapped({Op::gather, from, to, count, dtype, ncclSum, root, comm, stream});
}

FD_EXPORT ncclResult_t ncclScatter(const void* from, void* to, size_t count, ncclDataType_t dtype, int root,
                                   ncclComm_t comm, cudaStream_t stream) {
  return wrapped({Op::scatter, from, to, count, dtype, ncclSum, root, comm, stream});
}

FD_EXPORT ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
                                cudaStream_t stream) {
  return wrapped({Op::send, from, nullptr, count, dtype, ncclSum, peer, comm, stream});
}

FD_EXPORT ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
                                cudaStream_t stream) {
  return wrapped({Op::recv, nullptr, to, count, dtype, ncclSum, peer, comm, stream});
}
