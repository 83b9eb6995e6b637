// Trials per second on one core: boot, one kill, restart, resume to the end, every property. The first runs fill the
// memo and are not counted. Also the same with plans that differ from trial to trial, and how much faster than the time
// that it simulates a trial is.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "engine/model/numerics.h"
#include "harness/run/random_faults.h"
#include "harness/run/random_kills.h"
#include "harness/run/run.h"

namespace firedrill {
namespace {

Plan plan_of(const std::string& job) {
  LoadOptions options;
  Loaded<Job> loaded = load_job(fmt::format("scenarios/jobs/{}.yaml", job), options);
  FD_CHECK(static_cast<bool>(loaded), "{}", loaded.mistakes.empty() ? "no job" : loaded.mistakes.front());
  Plan plan;
  plan.scenario = job;
  plan.job = *loaded;
  plan.run_id = run_id_of(plan.job);
  plan.layout.dp = plan.job.lanes.dp;
  plan.recovery.budget = 2;
  return plan;
}

void must_pass(const Result<Trial>& trial, const Plan& plan) {
  FD_CHECK(static_cast<bool>(trial), "{}", describe(trial.error()));
  FD_CHECK(trial->verdict == RunVerdict::pass, "seed {}: {}: {}", plan.seed, trial->property, trial->evidence);
}

// One kill in the backward pass of a step in the middle, another scheduler seed in every trial.
void one_kill(benchmark::State& state, const std::string& job, PublishMode mode = PublishMode::sync,
              bool accounting = false) {
  Session session({});
  Plan plan = plan_of(job);
  plan.accounting = accounting;
  plan.job.checkpoint.mode = mode;
  FaultSpec kill;
  kill.at = {.attempt = 1, .rank = 2, .step = plan.job.steps / 2 + 1, .phase = Phase::backward};
  plan.faults = {kill};
  for (plan.seed = 1; plan.seed <= 20; ++plan.seed) must_pass(session.trial(plan), plan);
  for (auto _ : state) {
    ++plan.seed;
    must_pass(session.trial(plan), plan);
  }
  state.counters["trials_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["events"] = static_cast<double>(session.history().size());
}

// Steps of a second, and storage that takes tens of milliseconds for an operation and half a second for a sync: how
// much faster than these the trial is.
void simulated_time(benchmark::State& state) {
  using std::chrono::milliseconds;
  Session session({});
  Plan plan = plan_of("nano");
  Cluster& cluster = plan.job.cluster;
  cluster.forward = milliseconds(80);  // of each of the model's four segments
  cluster.backward = milliseconds(160);
  cluster.optimizer = milliseconds(10);
  cluster.file_operation = milliseconds(30);
  cluster.file_sync = milliseconds(500);
  cluster.file_bandwidth = 200'000'000;
  FaultSpec kill;
  kill.at = {.attempt = 1, .rank = 2, .step = plan.job.steps / 2 + 1, .phase = Phase::backward};
  plan.faults = {kill};
  for (plan.seed = 1; plan.seed <= 20; ++plan.seed) must_pass(session.trial(plan), plan);
  double simulated = 0;
  for (auto _ : state) {
    ++plan.seed;
    must_pass(session.trial(plan), plan);
    const History& history = session.history();
    simulated += std::chrono::duration<double>(history[history.of(EventKind::run_ended).back()].time).count();
  }
  state.counters["simulated_seconds"] = simulated / static_cast<double>(state.iterations());
  state.counters["simulated_per_real"] = benchmark::Counter(simulated, benchmark::Counter::kIsRate);
}

void drawn(benchmark::State& state, const std::string& job, Plan (*draw)(Plan base, std::uint64_t seed)) {
  Session session({});
  const Plan base = plan_of(job);
  std::uint64_t seed = 1;
  for (; seed <= 200; ++seed) {
    const Plan plan = draw(base, seed);
    must_pass(session.trial(plan), plan);
  }
  for (auto _ : state) {
    const Plan plan = draw(base, ++seed);
    must_pass(session.trial(plan), plan);
  }
  state.counters["trials_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(one_kill, nano, "nano")->Unit(benchmark::kMicrosecond)->MinTime(3);
BENCHMARK_CAPTURE(one_kill, nano_async, "nano", PublishMode::async)->Unit(benchmark::kMicrosecond)->MinTime(3);
BENCHMARK_CAPTURE(one_kill, nano_accounted, "nano", PublishMode::sync, true)->Unit(benchmark::kMicrosecond)->MinTime(3);
BENCHMARK_CAPTURE(one_kill, tiny, "tiny")->Unit(benchmark::kMicrosecond)->MinTime(3);
BENCHMARK(simulated_time)->Unit(benchmark::kMicrosecond)->MinTime(2)->UseRealTime();
BENCHMARK_CAPTURE(drawn, nano_kills, "nano", random_kills)->Unit(benchmark::kMicrosecond)->MinTime(3);
BENCHMARK_CAPTURE(drawn, nano_faults, "nano", random_faults)->Unit(benchmark::kMicrosecond)->MinTime(3);

}  // namespace
}  // namespace firedrill

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
