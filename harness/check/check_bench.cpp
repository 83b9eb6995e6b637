// What judging one trial costs: a run of 4 ranks and 12 steps with one kill, about as large as a nano trial.
#include <benchmark/benchmark.h>

#include "harness/check/drill_builder.h"
#include "harness/check/properties.h"

namespace firedrill {
namespace {

struct Drill {
  Drill() {
    builder.whole_run();
    append();
  }
  void append() {
    history.reset();
    for (const Event& event : builder.events) history.append(event);
  }
  DrillBuilder builder{4, 12, 60};
  History history{builder.tables};
};

void append_events(benchmark::State& state) {
  Drill drill;
  for (auto _ : state) drill.append();
  state.counters["events"] = static_cast<double>(drill.history.size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(drill.history.size()));
}
BENCHMARK(append_events);

void index_and_judge_all(benchmark::State& state) {
  Drill drill;
  for (auto _ : state) {
    drill.append();
    benchmark::DoNotOptimize(judge_all(Case(drill.history, drill.builder.plan)));
  }
  state.counters["events"] = static_cast<double>(drill.history.size());
}
BENCHMARK(index_and_judge_all)->Unit(benchmark::kMicrosecond);

void judge_one(benchmark::State& state, const Property& property) {
  Drill drill;
  const Case run(drill.history, drill.builder.plan);
  for (auto _ : state) benchmark::DoNotOptimize(judge(property, run));
}

void digest_history(benchmark::State& state) {
  Drill drill;
  for (auto _ : state) benchmark::DoNotOptimize(drill.history.digest());
}
BENCHMARK(digest_history)->Unit(benchmark::kMicrosecond);

void make_case(benchmark::State& state) {
  Drill drill;
  for (auto _ : state) benchmark::DoNotOptimize(Case(drill.history, drill.builder.plan));
}
BENCHMARK(make_case)->Unit(benchmark::kMicrosecond);

const bool registered = [] {
  for (const Property& property : properties()) {
    benchmark::RegisterBenchmark(std::string(property.name).c_str(), judge_one, property)
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
}  // namespace firedrill

BENCHMARK_MAIN();
