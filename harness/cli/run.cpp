// firedrill run SCENARIO... | DIR [--world sim|process]
#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <mutex>

#include "engine/base/text.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/pool.h"
#include "harness/cli/progress.h"
#include "harness/cli/run_one.h"
#include "harness/cli/watch.h"
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

struct RunArguments {
  std::vector<std::string> scenarios;
  std::string world;
  bool watch = false;
};

// One run has --out for itself; of several each has a folder in it.
std::optional<std::filesystem::path> directory_for(const CommonOptions& common, const Scenario& scenario,
                                                   std::size_t index, std::size_t runs) {
  if (common.out.empty()) return std::nullopt;
  return runs == 1 ? common.out : common.out / fmt::format("{:03}-{}", index + 1, scenario.name());
}

// A folder of several runs holds a folder for each, complete in itself.
void write_own_reports(const Report& report) {
  for (const RunReport& run : report.runs) {
    if (run.directory.empty() || report.runs.size() < 2) continue;
    Report own = report;
    own.verb = "run";
    own.runs = {run};
    conclude(own);
    std::ofstream(std::filesystem::path(run.directory) / "report.json") << to_json(own);
  }
}

VerbResult work(const RunArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  const auto files = scenario_files(arguments.scenarios, common.filter, result.mistakes);
  const auto scenarios = load_scenarios(files, common, world_from(arguments.world), result.mistakes);
  if (arguments.watch && common.jobs > 1) {
    result.mistakes.push_back(
        fmt::format("--watch with --jobs {}: the lines of several runs would mix; leave --jobs "
                    "out",
                    common.jobs));
  }
  if (!result.mistakes.empty()) return result;

  Report& report = result.report;
  report.runs.resize(scenarios.size());
  std::mutex mutex;
  {
    Progress progress(streams, scenarios.size(), common.quiet || arguments.watch);
    PoolOptions pool{.jobs = common.jobs};
    pool.session.golden_directory = golden_directory_of(files.front());
    pool.session.progress = [&progress](std::string_view what) { progress.doing(what); };
    if (arguments.watch) pool.session.watch = watch_on(streams.err);
    run_pool(scenarios.size(), pool, [&](std::size_t i, Session& session) {
      const Scenario& scenario = scenarios[i];
      Plan plan = make_plan(scenario, {.seed = common.seed, .mutant = common.mutant, .settings = common.set});
      prepare_job(plan.mutant, plan.job);
      if (arguments.watch) streams.err << fmt::format("{} (seed {})\n", scenario.path, plan.seed);
      plan.accounting = true;
      report.runs[i] = scenario.refusals.empty()
                           ? run_one(session, plan, directory_for(common, scenario, i, scenarios.size()))
                           : refused_run(plan, join(scenario.refusals, "; "));
      progress.done(fmt::format("{} {}", to_string(report.runs[i].verdict), scenario.path));
      const std::lock_guard lock(mutex);
      if (report.environment.numerics_key.empty()) {
        report.environment.numerics_key = session.numerics_key(plan.job);
      }
    });
  }
  conclude(report);
  write_own_reports(report);
  return result;
}

}  // namespace

Work add_run(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  app.add_option("scenario", arguments->scenarios, "Scenario files, or directories of them")->required();
  app.add_option("--world", arguments->world, "Run in this world, whatever the scenario says")
      ->check(CLI::IsMember({"sim", "process"}));
  app.add_flag("--watch", arguments->watch, "Tell the events, a line for each, on standard error");
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
