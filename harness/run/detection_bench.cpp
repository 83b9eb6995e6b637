// How soon the process world notices: from a fault's entry in the journal until the supervisor has decided what has
// happened, taken from the histories of real runs, and until the last rank of the attempt is gone. Every run goes on
// from there and must end with the golden's digest.
//
//   detection_bench [JOB.yaml] [RUNS]      default: scenarios/jobs/nano.yaml 5
//
// One line for each kind: the median of the runs, the least and the most. Exit status 1: one took longer than its
// bound.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/mutants/mutants.h"
#include "harness/run/run.h"
#include "harness/world/process_world.h"

namespace firedrill {
namespace {

using std::chrono::milliseconds;

struct Drilled {
  std::string_view name;
  FaultSpec fault;
  milliseconds bound;
};

// All of rank 1 in step 3; the deadline is 2 s.
std::array<Drilled, 5> drills() {
  const Where exchange{.rank = 1, .step = 3, .phase = Phase::exchange};
  return {Drilled{"death", {.kind = FaultKind::kill, .at = exchange}, milliseconds(1000)},
          Drilled{"exit", {.kind = FaultKind::exit, .at = exchange}, milliseconds(1000)},
          Drilled{"hang", {.kind = FaultKind::hang, .at = exchange}, milliseconds(5000)},
          Drilled{"stall", {.kind = FaultKind::stall, .at = exchange}, milliseconds(5000)},
          Drilled{"mismatch", {.kind = FaultKind::wrong_count, .at = exchange}, milliseconds(1000)}};
}

struct Times {
  Duration noticed{0};
  Duration gone{0};
};

// The supervisor's decision is its suspicion, or the end of a rank that says or shows what has happened.
Times times_of(const History& history) {
  const auto fired = history.of(EventKind::fault_fired);
  FD_CHECK(fired.size() == 1, "{} faults have fired", fired.size());
  const Event& fault = history[fired.front()];
  Times times{.noticed = Duration::max()};
  for (const Event& event : history.events()) {
    if (event.attempt != fault.attempt || event.time < fault.time) continue;
    const bool end = event.kind == EventKind::rank_ended;
    const bool tells = end && (event.rank == fault.rank || history.text(event.detail) == "mismatch");
    if (tells || event.kind == EventKind::suspected) {
      times.noticed = std::min<Duration>(times.noticed, event.time - fault.time);
    }
    if (end) times.gone = std::max<Duration>(times.gone, event.time - fault.time);
  }
  return times;
}

Times measure(Session& session, const Plan& plan) {
  const Result<RunReport> report = session.run(plan);
  FD_CHECK(report.ok(), "{}", describe(report.error()));
  FD_CHECK(report->verdict == RunVerdict::pass, "{}", report->reason);
  FD_CHECK(report->final_digest == report->golden_digest, "the end is not the golden's");
  FD_CHECK(report->attempts.size() == 2, "{} attempts", report->attempts.size());
  return times_of(session.history());
}

double in_ms(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

int measure_detection(const char* path, int runs) {
  Loaded<Job> loaded = load_job(path);
  for (const std::string& mistake : loaded.mistakes) fmt::print(stderr, "{}\n", mistake);
  if (!loaded) return 1;
  Scenario scenario{.path = path, .job_path = path, .job = *loaded};
  scenario.job.cluster.deadline = std::chrono::seconds(2);
  scenario.job.cluster.heartbeat = milliseconds(250);
  scenario.layout = Layout{.dp = scenario.job.lanes.dp, .guard = Guard::check};
  scenario.world = WorldKind::process;
  scenario.recovery.budget = 1;
  Session session({});
  int status = 0;
  for (const Drilled& drill : drills()) {
    scenario.faults = {drill.fault};
    const Plan plan = make_plan(scenario);
    std::vector<Duration> noticed;
    Duration gone{0};
    for (int i = 0; i < runs; ++i) {
      const Times times = measure(session, plan);
      noticed.push_back(times.noticed);
      gone = std::max(gone, times.gone);
    }
    std::ranges::sort(noticed);
    fmt::print(
        "{}: noticed after {:.0f} ms (median of {} runs, {:.0f} to {:.0f}; bound {}), all ranks gone after at most "
        "{:.0f} ms\n",
        drill.name, in_ms(noticed[noticed.size() / 2]), runs, in_ms(noticed.front()), in_ms(noticed.back()),
        drill.bound.count(), in_ms(gone));
    std::fflush(stdout);
    if (noticed.back() > drill.bound) status = 1;
  }
  return status;
}

}  // namespace
}  // namespace firedrill

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb) {
    return firedrill::zygote_main(argc, argv,
                                  {firedrill::make_protocol, firedrill::make_publisher, firedrill::make_rules});
  }
  const int runs = argc > 2 ? std::atoi(argv[2]) : 5;
  if (runs < 1) {
    fmt::print(stderr, "detection_bench: {} is no number of runs: give 1 or more\n", argv[2]);
    return 1;
  }
  return firedrill::measure_detection(argc > 1 ? argv[1] : "scenarios/jobs/nano.yaml", runs);
}
