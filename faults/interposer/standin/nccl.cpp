// The tests' own libnccl: the interface over exchange.h.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "faults/interposer/standin/exchange.h"

using namespace standin;  // allowed: C entry points cannot lie in a namespace

extern "C" {

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return join(comm, id.internal, ranks, rank);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
  return ncclCommInitRank(comm, ranks, id, rank);  // through the procedure table, as the real one may
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int, ncclUniqueId* ids, ncclConfig_t*) {
  return ncclCommInitRank(comm, ranks, ids[0], rank);
}
ncclResult_t ncclGroupStart() {
  group_start();
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return group_end(); }
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices, const int*) {
  static std::atomic<int> cliques{0};
  const char* folder = std::getenv("STANDIN_DIR");
  ncclUniqueId id{};
  std::snprintf(id.internal, sizeof id.internal, "%s/all-%d-%d", folder ? folder : "/dev/shm",
                static_cast<int>(::getpid()), cliques.fetch_add(1));
  ncclGroupStart();
  for (int i = 0; i < devices; ++i) {
    if (const ncclResult_t result = ncclCommInitRank(&comms[i], devices, id, i); result != ncclSuccess) return result;
  }
  return ncclGroupEnd();
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t*) {
  const int mine[2] = {color, key};
  int all[2 * ranks_max] = {};
  Operation exchange{.what = split, .from = mine, .to = all, .form = form(split, 2, ncclInt32, 0, 0), .comm = comm};
  if (const ncclResult_t result = run_now(exchange); result != ncclSuccess) return result;
  const int child = comm->children++;
  *made = nullptr;
  if (color < 0) return ncclSuccess;
  int size = 0;
  int rank = 0;
  for (int r = 0; r < comm->size; ++r) {
    if (all[2 * r] != color) continue;
    ++size;
    if (all[2 * r + 1] < key || (all[2 * r + 1] == key && r < comm->rank)) ++rank;
  }
  return join(made, comm->path + "." + std::to_string(child) + "." + std::to_string(color), size, rank);
}
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* made, ncclConfig_t*, int) {
  int before = 0;
  for (int i = 0; i < count; ++i) before += excluded[i] < comm->rank ? 1 : 0;
  return join(made, comm->path + ".k" + std::to_string(comm->children++), comm->size - count, comm->rank - before);
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return leave(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->shared->failed.store(1);
  return leave(comm);
}
ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  comm->shared->failed.store(1);
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->error;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                           cudaStream_t) {
  return submit({all_reduce, from, to, form(all_reduce, n, t, op, 0), c});
}
// The name under which a profiler reaches the function that others wrap.
ncclResult_t pncclAllReduce(const void* from, void* to, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                            cudaStream_t) {
  return submit({all_reduce, from, to, form(all_reduce, n, t, op, 0), c});
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t n, ncclDataType_t t, int root, ncclComm_t c,
                           cudaStream_t) {
  return submit({broadcast, from, to, form(broadcast, n, t, 0, root), c});
}
ncclResult_t ncclBcast(void* buffer, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, n, t, root, c, stream);  // so does the real one
}
ncclResult_t ncclReduce(const void* from, void* to, size_t n, ncclDataType_t t, ncclRedOp_t op, int root, ncclComm_t c,
                        cudaStream_t) {
  return submit({reduce, from, to, form(reduce, n, t, op, root), c});
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t) {
  return submit({all_gather, from, to, form(all_gather, n, t, 0, 0), c});
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                               cudaStream_t) {
  return submit({reduce_scatter, from, to, form(reduce_scatter, n, t, op, 0), c});
}
ncclResult_t ncclAlltoAll(const void* from, void* to, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t) {
  return submit({all_to_all, from, to, form(all_to_all, n, t, 0, 0), c});
}
ncclResult_t ncclGather(const void* from, void* to, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t) {
  return submit({gather, from, to, form(gather, n, t, 0, root), c});
}
ncclResult_t ncclScatter(const void* from, void* to, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t) {
  return submit({scatter, from, to, form(scatter, n, t, 0, root), c});
}
ncclResult_t ncclSend(const void* from, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t) {
  return submit({send, from, nullptr, form(send, n, t, 0, peer), c});
}
ncclResult_t ncclRecv(void* to, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t) {
  return submit({recv, nullptr, to, form(recv, n, t, 0, peer), c});
}
}
