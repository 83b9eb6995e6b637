// What publishing costs in the sim world when every kernel is found in the memo: four ranks, six publishes of a small
// state (16 groups, 51 tensors), retention included; the sim's files and the exchanges are part of it.
#include <benchmark/benchmark.h>

#include <array>
#include <string>
#include <vector>

#include "engine/ckpt/protocol.h"
#include "engine/comm/collectives_over_transport.h"
#include "engine/sim/machine.h"
#include "engine/sim/memo.h"

namespace firedrill {
namespace {

constexpr int ranks = 4;
constexpr int publishes = 6;

class QuietObserver final : public Observer {
 public:
  void event(const Event& event) override { benchmark::DoNotOptimize(event.kind); }
  NameId intern(std::string_view text) override { return static_cast<NameId>(text.size()); }
  bool knows_state(const Digest&) override { return true; }
  void describe_state(const Digest&, std::span<const NamedDigest>) override {}
};

template <class T>
void must(const Result<T>& result) {
  FD_CHECK(result.ok(), "{}", describe(result.error()));
}

StateView state_of(int rank, std::int64_t step) {
  StateView state;
  for (const char* kind : {"model", "optimizer.exp_avg", "optimizer.exp_avg_sq"}) {
    for (const char* segment : {"embedding", "layers.0.attention", "layers.0.mlp", "head"}) {
      StateGroup group{.name = std::string(kind) + "/" + segment, .count = 1024};
      if (group.name.starts_with("optimizer")) group.shard = ShardKind::optimizer;
      for (int t = 0; t < 4; ++t) {
        group.tensors.push_back(
            {.name = group.name + ".tensor." + std::to_string(t), .shape = {16, 16}, .offset = 256 * t});
      }
      const std::vector<float> numbers(1024, static_cast<float>(step) + static_cast<float>(group.name.size()));
      group.value = Value::copy_of(std::span<const float>(numbers));
      state.push_back(std::move(group));
    }
  }
  const auto add_number = [&state](const std::string& name, std::int64_t number, bool replicated) {
    state.push_back({.name = name,
                     .shard = ShardKind::extra,
                     .dtype = DType::i64,
                     .count = 1,
                     .replicated = replicated,
                     .tensors = {{.name = name, .shape = {}, .offset = 0}},
                     .value = Value::copy_of(std::span<const std::int64_t>(&number, 1))});
  };
  add_number("progress.step", step, true);
  add_number("progress.epoch", 0, true);
  add_number("random.lane." + std::to_string(rank), 7 * step, false);
  return state;
}

// One world, used again for every iteration.
class Bench {
 public:
  Bench() {
    job_.lanes.dp = ranks;
    job_.cluster.ranks_per_node = 2;
    identity_ = make_run_identity(job_, layout_, "bench", {}, "numerics");
    for (int rank = 0; rank < ranks; ++rank) {
      for (int p = 1; p <= publishes; ++p) states_[static_cast<std::size_t>(rank)].push_back(state_of(rank, p));
    }
  }

  void reset() { machine_.reset({}); }

  // One attempt: claim, find, restore what is found, publish `count` times.
  void run_attempt(int number, int count) {
    sim::Attempt& attempt = machine_.start_attempt({.number = number, .node_of_rank = {0, 0, 1, 1}});
    for (int rank = 0; rank < ranks; ++rank) {
      attempt.start(rank, [&, rank] { run_rank(attempt, rank, count); });
    }
    must(attempt.run());
    for (int rank = 0; rank < ranks; ++rank) FD_CHECK(attempt.thrown_by(rank).empty(), "{}", attempt.thrown_by(rank));
  }

  void discover() {
    const auto files = machine_.disk().files({});
    DirectCompute direct;
    sim::MemoCompute compute(direct, table_);
    Protocol protocol;
    const Discovery found = protocol.discover(*files, compute, ExpectedRun{.identity = identity_, .job = job_});
    FD_CHECK(found.chosen && found.chosen->step == publishes, "the newest checkpoint was not found");
  }

 private:
  void run_rank(sim::Attempt& attempt, int rank, int count) {
    const sim::Seams seams = attempt.seams(rank);
    DirectCompute direct;
    sim::MemoCompute compute(direct, table_);
    QuietObserver observer;
    Position position{.attempt = attempt.number(), .rank = rank};
    TransportCollectives collectives(seams.transport, compute, position, observer);
    Parts parts{seams.files, seams.transport, collectives, seams.store, compute,
                seams.clock, seams.host,      observer,    position};
    const Groups groups = groups_of(job_, layout_, rank);
    const CheckpointContext ctx{
        .parts = parts, .job = job_, .world = groups.world, .identity = identity_, .attempt = attempt.number()};
    std::vector<std::string> addresses;
    for (int peer = 0; peer < ranks; ++peer) addresses.push_back(attempt.seams(peer).transport.address());
    must(seams.transport.connect(addresses, ctx.call("").deadline));
    Protocol protocol;
    must(protocol.claim_attempt(ctx));
    const auto found = protocol.find(ctx);
    must(found);
    const std::vector<StateView>& states = states_[static_cast<std::size_t>(rank)];
    if (found->chosen) {
      StateView state = states[0];
      must(protocol.restore(ctx, *found, state));
    }
    for (int p = 0; p < count; ++p) must(protocol.publish(ctx, p + 1, states[static_cast<std::size_t>(p)], {}));
  }

  Job job_;
  Layout layout_{.dp = ranks};
  RunIdentity identity_;
  std::array<std::vector<StateView>, ranks> states_;
  sim::FiberPool pool_;
  sim::Machine machine_{pool_};
  sim::MemoTable table_{{.recheck_every = 0}};
};

void publish(benchmark::State& state) {
  Bench bench;
  const int count = static_cast<int>(state.range(0));
  for (auto _ : state) {
    bench.reset();
    bench.run_attempt(1, count);
  }
}
BENCHMARK(publish)->Arg(0)->Arg(publishes);

// The second attempt finds and restores; what it adds to publish/6 is the cost of a resume on four ranks.
void publish_and_resume(benchmark::State& state) {
  Bench bench;
  for (auto _ : state) {
    bench.reset();
    bench.run_attempt(1, publishes);
    bench.run_attempt(2, 0);
  }
}
BENCHMARK(publish_and_resume);

// One look at a disk with two validated checkpoints, as probes do it.
void discover(benchmark::State& state) {
  Bench bench;
  bench.reset();
  bench.run_attempt(1, publishes);
  bench.run_attempt(2, 0);
  for (auto _ : state) bench.discover();
}
BENCHMARK(discover);

}  // namespace
}  // namespace firedrill

BENCHMARK_MAIN();
