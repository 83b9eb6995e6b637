// firedrill preflight JOB --dir DIR: go or no-go before a long run.
#include "harness/preflight/preflight.h"

#include <fmt/format.h>

#include <memory>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/job/planner.h"
#include "harness/cli/progress.h"
#include "harness/cli/stop_on_signal.h"
#include "harness/cli/verb.h"
#include "harness/scenario/scenario.h"

namespace firedrill {
namespace {

struct PreflightArguments {
  std::string job;
  std::string directory;
  std::string layout;
  std::string level = "quick";
  std::string restore;
  std::string interval;
  std::string load;
};

preflight::Level level_from(const std::string& name) {
  if (name == "full") return preflight::Level::full;
  return name == "standard" ? preflight::Level::standard : preflight::Level::quick;
}

void read_duration(const std::string& text, std::string_view option, std::vector<std::string>& mistakes,
                   const std::function<void(std::chrono::nanoseconds)>& take) {
  if (text.empty()) return;
  const auto duration = parse_duration(text);
  if (duration && duration->count() > 0) return take(*duration);
  mistakes.push_back(fmt::format("{} is `{}`: give a time above 0 with its unit, such as 30min", option, text));
}

// One rank for each dp lane, unless it is given.
Layout layout_of(const PreflightArguments& arguments, const Job& job, std::vector<std::string>& mistakes) {
  Layout layout{.dp = job.lanes.dp};
  if (!arguments.layout.empty()) {
    Loaded<Layout> given = parse_layout(arguments.layout, "--layout " + arguments.layout);
    mistakes.insert(mistakes.end(), given.mistakes.begin(), given.mistakes.end());
    if (given) layout = *given;
  }
  if (!mistakes.empty()) return layout;
  for (const std::string& mistake : mistakes_and_remedies(layout, job)) mistakes.push_back("--layout: " + mistake);
  return layout;
}

// An option that changes nothing is not what its user meant.
void add_unused(const PreflightArguments& arguments, const CommonOptions& common, std::vector<std::string>& mistakes) {
  if (!common.mutant.empty()) mistakes.emplace_back("--mutant: preflight runs the right engine");
  if (common.seed) mistakes.emplace_back("--seed: preflight draws nothing from it; leave it out");
  if (common.jobs != 1) mistakes.emplace_back("--jobs: preflight does one check at a time; leave it out");
  if (!common.filter.empty()) mistakes.emplace_back("--filter: preflight runs all checks of its --level; leave it out");
  if (!arguments.load.empty() && arguments.level != "full") {
    mistakes.push_back(
        fmt::format("--load: level {} has no load; give --level full, or leave it out", arguments.level));
  }
}

VerbResult options_from(const PreflightArguments& arguments, const CommonOptions& common, preflight::Options& options) {
  VerbResult result;
  Loaded<Job> job = load_job(arguments.job, {.set = common.set, .properties = {}, .world = {}});
  result.mistakes = job.mistakes;
  add_unused(arguments, common, result.mistakes);
  if (arguments.directory.empty()) {
    result.mistakes.emplace_back("--dir is empty: give the directory that will hold the checkpoints");
  }
  read_duration(arguments.interval, "--interval", result.mistakes, [&](auto time) { options.interval = time; });
  read_duration(arguments.load, "--load", result.mistakes, [&](auto time) { options.load = time; });
  if (!result.mistakes.empty()) return result;
  options.job = *job;
  options.layout = layout_of(arguments, *job, result.mistakes);
  options.directory = arguments.directory;
  options.level = level_from(arguments.level);
  options.restore = arguments.restore;
  return result;
}

CaseLine case_of(const preflight::CheckResult& check) {
  CaseLine line{.name = check.name, .failure = "", .error = "", .seconds = check.seconds};
  const bool bad = check.standing() == preflight::Standing::no_go;
  (bad ? line.failure : line.error) = complaint_of(check);
  return line;
}

VerbResult work(const PreflightArguments& arguments, const CommonOptions& common, Streams streams) {
  preflight::Options options;
  VerbResult result = options_from(arguments, common, options);
  if (!result.mistakes.empty()) return result;
  Report& report = result.report;
  std::size_t total = 0;
  for (const preflight::Check& check : preflight::checks()) total += check.from <= options.level ? 1 : 0;
  Progress progress(streams, total, common.quiet);
  options.doing = [&progress](std::string_view what) { progress.doing(what); };
  const StopOnSignal signals;  // what was done until then is told, and nothing stays behind
  options.stop = [] { return StopOnSignal::came().load(); };
  const auto ended = [&progress](const preflight::CheckResult& check) {
    progress.done(fmt::format("{} {}: {}", to_string(check.standing()), check.name, check.headline));
  };
  const Result<std::vector<preflight::CheckResult>> checks = run_checks(options, ended);
  if (checks.failed_with(Code::invalid_input)) {
    result.mistakes.push_back(describe(checks.error()));
    return result;
  }
  report.more["level"] = arguments.level;
  report.more["layout"] = to_string(options.layout);
  report.more["directory"] = options.directory.string();
  report.more["checks"] = nlohmann::ordered_json::array();
  if (!checks) {
    report.verdict = RunVerdict::unknown;
    report.exit_code = exit_code_of(report.verdict);
    report.lines.push_back(describe(checks.error()));
    return result;
  }
  for (const preflight::CheckResult& check : *checks) {
    report.more["checks"].push_back(to_json(check));
    report.cases.push_back(case_of(check));
  }
  report.lines = table_of(*checks);
  report.exit_code = exit_code_of(*checks);
  report.verdict = verdict_of_exit_code(report.exit_code);
  report.more["go"] = report.exit_code == 0;
  report.lines.push_back(fmt::format("{}: {} on {}, level {}",
                                     report.exit_code == 0   ? "GO"
                                     : report.exit_code == 2 ? "NO-GO"
                                                             : "COULD NOT TELL",
                                     options.job.name, to_string(options.layout), arguments.level));
  return result;
}

}  // namespace

Work add_preflight(CLI::App& app) {
  auto arguments = std::make_shared<PreflightArguments>();
  app.add_option("job", arguments->job, "Job file")->required();
  app.add_option("--dir", arguments->directory, "Where the checkpoints will lie; made if it is not there")->required();
  app.add_option("--layout", arguments->layout, "As in `fit`, such as dp=4,tp=2; left out: one rank for each dp lane");
  app.add_option("--level", arguments->level, "quick (30 s), standard (3 min) or full (15 min)")
      ->check(CLI::IsMember({"quick", "standard", "full"}))
      ->capture_default_str();
  app.add_option("--restore", arguments->restore, "An existing checkpoint directory: audit it and restore from it");
  app.add_option("--interval", arguments->interval, "Time between two checkpoints, such as 30min, to judge saves by");
  app.add_option("--load", arguments->load, "How long the load of level full goes on (10min)");
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
