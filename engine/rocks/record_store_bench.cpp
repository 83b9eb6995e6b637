// What the record store costs on a disk in memory, at the size of one publish: opening to write, one synced batch with
// a manifest of 3 KB, and reading all records with the store's files given.
#include <benchmark/benchmark.h>

#include "engine/rocks/record_store.h"
#include "engine/sim/disk.h"

namespace firedrill {
namespace {

struct Root {
  sim::Disk disk;
  std::unique_ptr<FileSystem> files = disk.files({});
  std::unique_ptr<RecordStore> store;

  Root() {
    FD_CHECK(files->make_directory("catalog").ok(), "a fresh disk");
    open();
    for (int i = 0; i < 8; ++i) write(i);
  }
  void open() {
    store.reset();
    auto opened = RecordStore::open(*files, "catalog");
    FD_CHECK(opened.ok(), "{}", describe(opened.error()));
    store = *std::move(opened);
  }
  void write(int i) {
    const Status written =
        store->write({{.name = "manifests/" + std::to_string(i), .value = Value::copy_of(std::string(3000, 'm'))}});
    FD_CHECK(written.ok(), "{}", describe(written.error()));
  }
};

void make_store(benchmark::State& state) {
  for (auto _ : state) Root root;
}
BENCHMARK(make_store)->Unit(benchmark::kMicrosecond);

void open_to_write(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Root root;
    state.ResumeTiming();
    root.open();
  }
}
BENCHMARK(open_to_write)->Unit(benchmark::kMicrosecond)->Iterations(300);

void commit(benchmark::State& state) {
  Root root;
  int i = 8;
  for (auto _ : state) root.write(i++);
}
BENCHMARK(commit)->Unit(benchmark::kMicrosecond)->Iterations(3000);

void read_records(benchmark::State& state) {
  Root root;
  for (auto _ : state) {
    const auto loaded = load_store(*root.files, "catalog");
    const auto records = decode_store(*loaded);
    FD_CHECK(records.ok() && RecordView(*records).size() == 8, "all records");
  }
}
BENCHMARK(read_records)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace firedrill

BENCHMARK_MAIN();
