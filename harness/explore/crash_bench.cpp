// Checked states per second and core: claim, find and restore on all ranks and the comparison with the golden, with
// digests kept per extent and with every byte hashed again.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "engine/model/numerics.h"
#include "harness/explore/subject.h"
#include "harness/world/sim_world.h"
#include "harness/world/supervisor.h"

namespace firedrill {
namespace {

std::unique_ptr<ExploreSubject> subject_of(const std::string& file) {
  Loaded<Scenario> scenario = load_scenario(file);
  FD_CHECK(static_cast<bool>(scenario), "{}", scenario.mistakes.empty() ? file : scenario.mistakes.front());
  auto made = ExploreSubject::make(make_plan(*scenario), {});
  FD_CHECK(static_cast<bool>(made), "{}", describe(made.error()));
  return *std::move(made);
}

FixedContent content_after(const ExploreSubject& subject) {
  Tables tables;
  History history(tables);
  Prober prober(std::make_unique<Protocol>(), subject.plan().job, subject.identity(), tables);
  SimResources resources;
  const Subject run = subject.to_run(subject.plan());
  SimWorld world(resources, run, prober, history, {.probes = false});
  const auto outcome = supervise(subject.plan(), world, world.observer(), history);
  FD_CHECK(outcome && outcome->finished, "the run did not finish");
  auto content = FixedContent::copy_of(*resources.machine.disk().snapshot(sim::View::power_fails));
  FD_CHECK(static_cast<bool>(content), "{}", describe(content.error()));
  return *std::move(content);
}

void one_content(benchmark::State& state, bool keep_digests) {
  const auto subject = subject_of("scenarios/storage/one_publish.yaml");
  FixedContent content = content_after(*subject);
  RestoreCheck check(subject->to_check(2), {.keep_digests = keep_digests});
  for (auto _ : state) {
    const CheckAnswer& answer = check.check(content);
    FD_CHECK(answer.golden, "{}", answer.trouble);
  }
  state.counters["states_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(one_content, digests_kept, true)->Unit(benchmark::kMicrosecond)->MinTime(2);
BENCHMARK_CAPTURE(one_content, hashed_again, false)->Unit(benchmark::kMicrosecond)->MinTime(2);

}  // namespace
}  // namespace firedrill

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
