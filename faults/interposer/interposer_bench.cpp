// What the interposer adds to a call: the same call of the stand-in with and without it, in turns in one program. The
// communicator has one rank, so that the call itself costs almost nothing.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "faults/interposer/preload/nccl_api.h"

extern "C" ncclResult_t pncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                                       cudaStream_t);

namespace {

ncclComm_t communicator() {
  static const ncclComm_t made = [] {
    ncclUniqueId id{};
    std::snprintf(id.internal, sizeof id.internal, "/dev/shm/firedrill-bench-%d", static_cast<int>(::getpid()));
    ncclComm_t comm = nullptr;
    if (ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) std::abort();
    ::unlink(id.internal);
    return comm;
  }();
  return made;
}

float value = 1;

void call_without(benchmark::State& state) {
  const ncclComm_t comm = communicator();
  for (auto _ : state) pncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr);
}
void call_with(benchmark::State& state) {
  const ncclComm_t comm = communicator();
  for (auto _ : state) ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr);
}
BENCHMARK(call_without)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(call_with)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(call_with)->Threads(2)->Repetitions(5)->ReportAggregatesOnly();

}  // namespace

BENCHMARK_MAIN();
