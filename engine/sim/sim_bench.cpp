// What the sim world's machinery costs in real time. A trial of four ranks makes about 3,000 seam calls.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "engine/sim/machine.h"
#include "engine/sim/memo.h"

namespace firedrill::sim {
namespace {

void fiber_switch(benchmark::State& state) {
  FiberPool pool;
  Scheduler scheduler(pool);
  scheduler.reset({});
  bool done = false;
  for (std::uint64_t i = 0; i < 4; ++i) {
    scheduler.spawn({.order = i}, [&] {
      while (!done) scheduler.charge_exactly(Duration{1});
    });
  }
  Time limit{0};
  for (auto _ : state) scheduler.run(limit += Time{1000});  // 4 fibers x 1000 switches
  done = true;
  scheduler.run();
  state.SetItemsProcessed(state.iterations() * 4000);
}
BENCHMARK(fiber_switch);

// One rank, no other to switch to: the cost of the operations alone.
void file_operations(benchmark::State& state) {
  FiberPool pool;
  Machine machine(pool);
  const Value bytes = Value::copy_of(std::string(4096, 'x'));
  (void)bytes.digest();
  const std::vector<std::string> names = {"shards/model-0", "shards/model-1", "shards/model-2", "shards/model-3"};
  for (auto _ : state) {
    machine.reset({.schedule = {.seed = 1}, .costs = {}, .disk = {}});
    Attempt& attempt = machine.start_attempt({.number = 1, .node_of_rank = {0}});
    attempt.start(0, [&] {
      FileSystem& files = attempt.seams(0).files;
      (void)files.make_directory("shards");
      for (int i = 0; i < 20; ++i) {
        const std::string& name = names[static_cast<std::size_t>(i % 4)];
        {
          auto file = files.create(name);
          (void)(*file)->write(0, bytes);
          (void)(*file)->sync();
        }
        (void)files.sync_directory("shards");
        {
          auto file = files.open(name);
          (void)(*file)->read(0, 4096);
        }
        (void)files.remove(name);
      }
    });
    (void)attempt.run();
  }
  state.SetItemsProcessed(state.iterations() * (1 + 20 * 7));
}
BENCHMARK(file_operations);

void send_and_receive(benchmark::State& state) {
  FiberPool pool;
  Machine machine(pool);
  const Value bytes = Value::copy_of(std::string(4096, 'x'));
  for (auto _ : state) {
    machine.reset({.schedule = {.seed = 1}, .costs = {}, .disk = {}});
    Attempt& attempt = machine.start_attempt({.number = 1, .node_of_rank = {0, 0, 1, 1}});
    for (int rank = 0; rank < 4; ++rank) {
      attempt.start(rank, [&, rank] {
        Transport& transport = attempt.seams(rank).transport;
        (void)transport.connect({"sim:1:0", "sim:1:1", "sim:1:2", "sim:1:3"}, never);
        for (int i = 0; i < 100; ++i) {
          (void)transport.send((rank + 1) % 4, 1, bytes, never);
          (void)transport.recv((rank + 3) % 4, 1, never);
        }
      });
    }
    (void)attempt.run();
  }
  state.SetItemsProcessed(state.iterations() * 4 * 100 * 2);
}
BENCHMARK(send_and_receive);

// Four ranks, a mix of calls as in a trial: 3,000 of them.
void trial_of_3000_calls(benchmark::State& state) {
  FiberPool pool;
  Machine machine(pool);
  const Value bytes = Value::copy_of(std::string(4096, 'x'));
  (void)bytes.digest();
  const std::vector<std::string> names = {"shards/0", "shards/1", "shards/2", "shards/3"};
  std::uint64_t seed = 0;
  for (auto _ : state) {
    machine.reset({.schedule = {.seed = ++seed}, .costs = {}, .disk = {}});
    Attempt& attempt = machine.start_attempt({.number = 1, .node_of_rank = {0, 0, 1, 1}});
    for (int rank = 0; rank < 4; ++rank) {
      attempt.start(rank, [&, rank] {
        const Seams seams = attempt.seams(rank);
        (void)seams.transport.connect({"sim:1:0", "sim:1:1", "sim:1:2", "sim:1:3"}, never);
        if (rank == 0) (void)seams.files.make_directory("shards");
        const std::string& name = names[static_cast<std::size_t>(rank)];
        for (int step = 0; step < 50; ++step) {
          for (int i = 0; i < 5; ++i) {
            (void)seams.transport.send((rank + 1) % 4, 1, bytes, never);
            (void)seams.transport.recv((rank + 3) % 4, 1, never);
          }
          if (auto file = seams.files.create(name)) {
            (void)(*file)->write(0, bytes);
            (void)(*file)->sync();
          }
          (void)seams.files.sync_directory("shards");
          (void)seams.files.remove(name);
        }
      });
    }
    (void)attempt.run();
  }
  state.SetItemsProcessed(state.iterations() * 4 * 50 * 15);
}
BENCHMARK(trial_of_3000_calls)->Unit(benchmark::kMicrosecond);

void memo_hit(benchmark::State& state) {
  const Kernel kernel =
      make_kernel("bench.kernel", KernelKind::other,
                  [](std::span<const std::byte>, std::span<Value> inputs) -> Result<Value> { return inputs[0]; });
  DirectCompute direct;
  MemoTable table;
  MemoCompute compute(direct, table);
  std::vector<Value> values;
  for (int i = 0; i < 1000; ++i) values.push_back(Value::copy_of(std::to_string(i)));
  std::size_t i = 0;
  const std::uint64_t scalars = 7;
  for (auto _ : state) {
    Value inputs[3] = {values[i], values[(i + 1) % 1000], values[(i + 2) % 1000]};
    benchmark::DoNotOptimize(compute.run(kernel, std::as_bytes(std::span(&scalars, 1)), inputs));
    i = (i + 1) % 1000;
  }
}
BENCHMARK(memo_hit);

}  // namespace
}  // namespace firedrill::sim

BENCHMARK_MAIN();
