// Checked states per second and core: claim, find and restore on all ranks and the comparison with the golden, with
// digests kept per extent, with every byte hashed again, and with the RocksDB catalog; and the wall time of a whole
// publish with each engine.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <map>

#include "engine/model/numerics.h"
#include "harness/explore/crashcheck.h"
#include "harness/explore/record.h"

namespace firedrill {
namespace {

constexpr const char* one_publish = "scenarios/storage/one_publish.yaml";

struct Loading {
  std::unique_ptr<ExploreSubject> subject;
  CrashSpec crash;
};

Loading load(std::vector<std::string> set = {}) {
  Loaded<Scenario> scenario = load_scenario(one_publish, {.set = std::move(set)});
  FD_CHECK(static_cast<bool>(scenario), "{}", scenario.mistakes.empty() ? one_publish : scenario.mistakes.front());
  auto made = ExploreSubject::make(make_plan(*scenario), {});
  FD_CHECK(static_cast<bool>(made), "{}", describe(made.error()));
  return {.subject = *std::move(made), .crash = scenario->crash.value_or(CrashSpec{})};
}

FixedContent content_after(const ExploreSubject& subject) {
  const auto run = record_run(subject, subject.plan());
  FD_CHECK(run && run->finished, "the run did not finish");
  std::vector<crash::OperationId> all(run->trace.operations.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<crash::OperationId>(i);
  FixedContent content;
  std::map<std::string, DiskContent::Node> nodes{{"", DiskContent::root}};
  for (const crash::BaseEntry& entry : settled(run->trace, all).base) {
    const DiskContent::Node parent = nodes.at(std::string(parent_path(entry.path)));
    nodes[entry.path] = content.add(parent, file_name(entry.path), entry.kind, entry.bytes);
  }
  return content;
}

void rate(benchmark::State& state, double states) {
  state.counters["states_per_second"] = benchmark::Counter(states, benchmark::Counter::kIsRate);
}

// One content of the disk again and again: what a check costs.
void one_content(benchmark::State& state, bool keep_digests, const std::string& catalog) {
  const Loading loaded = load({"job.checkpoint.catalog=" + catalog});
  FixedContent content = content_after(*loaded.subject);
  RestoreCheck check(loaded.subject->to_check(2), {.keep_digests = keep_digests});
  for (auto _ : state) {
    const CheckAnswer& answer = check.check(content);
    FD_CHECK(answer.golden, "{}", answer.trouble);
  }
  rate(state, static_cast<double>(state.iterations()));
}

// Every crash state of one publish, without the recording.
void whole_publish(benchmark::State& state, EngineKind engine, int jobs) {
  const Loading loaded = load();
  const auto cases = cases_of(*loaded.subject, loaded.crash, {}, {});
  FD_CHECK(static_cast<bool>(cases), "{}", describe(cases.error()));
  double states = 0;
  for (auto _ : state) {
    const auto result = crashcheck(*loaded.subject, loaded.crash, cases->cases, {.engine = engine, .jobs = jobs});
    FD_CHECK(result && result->complete && result->violations == 0, "one publish does not pass");
    states += static_cast<double>(result->checked);
    state.counters["legal_states"] = result->legal.to_double();
  }
  rate(state, states);
}

BENCHMARK_CAPTURE(one_content, digests_kept, true, "files")->Unit(benchmark::kMicrosecond)->MinTime(2);
BENCHMARK_CAPTURE(one_content, hashed_again, false, "files")->Unit(benchmark::kMicrosecond)->MinTime(2);
BENCHMARK_CAPTURE(one_content, rocksdb, true, "rocksdb")->Unit(benchmark::kMicrosecond)->MinTime(2);
BENCHMARK_CAPTURE(whole_publish, lazy, EngineKind::lazy, 1)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(whole_publish, explicit_two_jobs, EngineKind::explicit_states, 2)
    ->Unit(benchmark::kSecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace firedrill

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
