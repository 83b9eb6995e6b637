// What the guard costs: CPU time of the ranks of a job in the process world, without a guard and with it, in turns in
// one run, so that whatever else the machine does hits both alike. The time before the first step (a process that
// starts, the meeting, the search for a checkpoint) is measured by runs of one step and taken off.
//
//   guard_bench [JOB.yaml] [PAIRS]      default: scenarios/jobs/tiny.yaml 5
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
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

constexpr int steps = 60;

// Of all children that have ended: the ranks, and the process that they were forked from.
double cpu_seconds() {
  rusage usage{};
  FD_CHECK(getrusage(RUSAGE_CHILDREN, &usage) == 0, "the system does not tell the CPU time of children");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double measure(Session& session, Plan plan, Guard guard) {
  plan.layout.guard = guard;
  const double before = cpu_seconds();
  const Result<RunReport> report = session.run(plan);
  FD_CHECK(report.ok(), "{}", describe(report.error()));
  FD_CHECK(report->verdict == RunVerdict::pass, "{}", report->reason);
  return cpu_seconds() - before;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int measure_guards(const char* path, int pairs) {
  Loaded<Job> loaded = load_job(path);
  for (const std::string& mistake : loaded.mistakes) fmt::print(stderr, "{}\n", mistake);
  if (!loaded) return 1;
  Scenario scenario{.path = path, .job_path = path, .job = *loaded};
  scenario.job.checkpoint.every = 0;
  scenario.layout = Layout{.dp = scenario.job.lanes.dp};
  scenario.world = WorldKind::process;
  Session session({});
  const auto plan_of = [&scenario](int count) {
    scenario.job.steps = count;
    return make_plan(scenario);
  };
  const Plan one = plan_of(1);
  const Plan many = plan_of(steps);
  std::vector<double> bases;
  for (int i = 0; i < 3; ++i) bases.push_back(measure(session, one, Guard::off));
  const double base = median(bases);
  for (const Guard guard : {Guard::record, Guard::check}) {
    std::vector<double> ratios;
    std::vector<double> without;
    for (int i = 0; i < pairs; ++i) {
      const double off = measure(session, many, Guard::off) - base;
      const double on = measure(session, many, guard) - base;
      without.push_back(off);
      ratios.push_back(100 * (on / off - 1));
    }
    fmt::print("{}: {:+.2f} % of the ranks' CPU time (median of {} pairs, {:+.2f} to {:+.2f}; {:.2f} s without)\n",
               to_string(guard), median(ratios), pairs, *std::ranges::min_element(ratios),
               *std::ranges::max_element(ratios), median(without));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace firedrill

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb) {
    return firedrill::zygote_main(argc, argv,
                                  {firedrill::make_protocol, firedrill::make_publisher, firedrill::make_rules});
  }
  return firedrill::measure_guards(argc > 1 ? argv[1] : "scenarios/jobs/tiny.yaml", argc > 2 ? std::atoi(argv[2]) : 5);
}
