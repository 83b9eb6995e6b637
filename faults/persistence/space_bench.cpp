// How fast the space of crash states is walked and counted: four ranks with three synced shards each, then a manifest
// that is written, renamed and synced.
#include <benchmark/benchmark.h>

#include "faults/persistence/counter.h"
#include "faults/persistence/test_trace.h"
#include "faults/persistence/test_walk.h"

namespace firedrill::crash {
namespace {

Trace publish(int ranks) {
  TraceBuilder trace;
  trace.base("shards").base("tmp").base("manifests");
  trace.rank(0);
  trace.make_directory("shards/4-1-1");
  const OperationId made = trace.sync_directory("shards");
  std::vector<OperationId> ready;
  for (int rank = 0; rank < ranks; ++rank) {
    trace.rank(rank).after(made);
    for (int shard = 0; shard < 3; ++shard) {
      const std::string path = "shards/4-1-1/" + std::to_string(rank) + "-" + std::to_string(shard);
      trace.create(path);
      trace.write(path, 0, pattern(5 * sector_size, rank * 10 + shard));
      trace.sync(path);
    }
    ready.push_back(trace.sync_directory("shards/4-1-1"));
  }
  trace.rank(0);
  for (const OperationId operation : ready) trace.after(operation);
  trace.create("tmp/4-1-1");
  trace.write("tmp/4-1-1", 0, pattern(3000, 99));
  trace.sync("tmp/4-1-1");
  trace.rename("tmp/4-1-1", "manifests/4-1-1");
  trace.sync_directory("manifests");
  trace.acknowledge(4);
  return trace.trace();
}

void walk(benchmark::State& state) {
  const auto space = space_of(publish(static_cast<int>(state.range(0))));
  std::int64_t leaves = 0;
  for (auto _ : state) {
    SpaceWalk(*space).run([&](Partial& partial) {
      benchmark::DoNotOptimize(partial.requirement());
      ++leaves;
    });
  }
  state.SetItemsProcessed(leaves);
}
BENCHMARK(walk)->Arg(2)->Arg(4)->Unit(benchmark::kMillisecond);

void assign_and_undo(benchmark::State& state) {
  const auto space = space_of(publish(4));
  Partial partial(*space);
  std::vector<CellId> cells;
  for (CellId cell = 0; cell < space->cell_count(); ++cell) {
    if (space->cell(cell).kind == CellKind::name && partial.assign(cell, 0)) cells.push_back(cell);
  }
  partial.undo();
  const CellId last = cells.back();
  for (auto _ : state) {
    benchmark::DoNotOptimize(partial.assign(last, 0));
    partial.undo();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(assign_and_undo);

void count_all(benchmark::State& state) {
  const auto space = space_of(publish(static_cast<int>(state.range(0))));
  std::string counted;
  for (auto _ : state) counted = Counter(*space).count_all().to_short_string();
  state.SetLabel(counted);
}
BENCHMARK(count_all)->Arg(4)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

void build(benchmark::State& state) {
  const Trace trace = publish(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(space_of(trace));
}
BENCHMARK(build)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace firedrill::crash

BENCHMARK_MAIN();
