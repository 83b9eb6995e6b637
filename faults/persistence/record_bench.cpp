// What recording costs: the same work on the sim world's disk, bare and recorded, one after the other in every round,
// as the ratio of the two times. `base` is the worst case (operations of some tens of nanoseconds on nothing but
// memory); `beside_work` has what a publish does for each file besides, its bytes hashed once.
#include <benchmark/benchmark.h>

#include <ctime>

#include "engine/sim/disk.h"
#include "faults/persistence/recording.h"

namespace firedrill::crash {
namespace {

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {"a", "b", "c", "d", "e", "f", "g", "h"};
  return all;
}

void work(FileSystem& files, std::int64_t hashed) {
  static const std::string bytes(16384, 'x');
  for (const std::string& name : names()) {
    auto file = files.create(name);
    const Value value = Value::copy_of(bytes);
    if (hashed > 0) benchmark::DoNotOptimize(value.digest());
    (void)(*file)->write(0, value);
    (void)(*file)->sync();
    (void)(*file)->close();
  }
  (void)files.sync_directory("");
  for (const std::string& name : names()) (void)files.remove(name);
}

// Of processor time: others may be busy on this machine.
double seconds(const auto& run) {
  const std::clock_t start = std::clock();
  run();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void recorded_against_bare(benchmark::State& state) {
  double bare = 0;
  double recorded = 0;
  constexpr int rounds = 200;
  for (auto _ : state) {
    sim::Disk plain;
    const auto plain_files = plain.files({});
    bare += seconds([&] {
      for (int i = 0; i < rounds; ++i) work(*plain_files, state.range(0));
    });
    sim::Disk disk;
    const auto inner = disk.files({});
    Recorder recorder({});
    const Position position{.attempt = 1};
    RankRecorder rank(recorder, position, 0);
    RecordingFileSystem files(*inner, rank);
    recorded += seconds([&] {
      for (int i = 0; i < rounds; ++i) work(files, state.range(0));
    });
  }
  const double operations =
      static_cast<double>(state.iterations()) * rounds * static_cast<double>(names().size() * 5 + 1);
  state.counters["ratio"] = recorded / bare;
  state.counters["ns_per_operation"] = (recorded - bare) / operations * 1e9;
}
BENCHMARK(recorded_against_bare)->ArgName("hashed")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace firedrill::crash

BENCHMARK_MAIN();
