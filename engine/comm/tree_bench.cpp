// What a tree of sums and a digest cost where no memo knows the result: eight lanes of one gradient, and its bytes.
#include <benchmark/benchmark.h>

#include <vector>

#include "engine/comm/tree.h"

namespace firedrill {
namespace {

constexpr int lanes = 8;

std::vector<Value> gradients(std::int64_t count) {
  std::vector<Value> list;
  for (int lane = 0; lane < lanes; ++lane) {
    const std::vector<float> numbers(static_cast<std::size_t>(count), 0.5F + static_cast<float>(lane));
    list.push_back(Value::copy_of(std::span<const float>(numbers)));
  }
  return list;
}

void tree_reduce(benchmark::State& state) {
  DirectCompute compute;
  const std::vector<Value> all = gradients(state.range(0));
  for (auto _ : state) {
    TreeReduction tree(compute, ReduceOp::sum, lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      const Status added = tree.add({.level = 0, .index = lane}, all[static_cast<std::size_t>(lane)]);
      FD_CHECK(added.ok(), "{}", describe(added.error()));
    }
    benchmark::DoNotOptimize(tree.take(0));
  }
  state.SetBytesProcessed(state.iterations() * lanes * state.range(0) * 4);
}

void digest(benchmark::State& state) {
  const std::vector<Value> all = gradients(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(digest_of(all.front().bytes()));
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}

BENCHMARK(tree_reduce)->Arg(1 << 10)->Arg(1 << 18);
BENCHMARK(digest)->Arg(1 << 10)->Arg(1 << 18);

}  // namespace
}  // namespace firedrill

BENCHMARK_MAIN();
