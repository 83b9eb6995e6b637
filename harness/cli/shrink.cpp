// firedrill shrink RUN_DIR|PLAN: from a saved plan that fails to the fewest and simplest faults that still fail in the
// same way, as a scenario file.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "engine/base/text.h"
#include "harness/cli/given_plan.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/progress.h"
#include "harness/cli/verb.h"
#include "harness/explore/shrink/scenario_text.h"
#include "harness/explore/shrink/shrink.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

struct ShrinkArguments {
  std::string given;
  std::string property;
  ShrinkBounds bounds;
};

// A run with real processes costs a second or more, and shrinking takes dozens of them.
constexpr int process_ranks_max = 8;
constexpr int process_steps_max = 24;
constexpr std::int64_t process_trials_max = 60;

std::string too_large(const Plan& plan) {
  const int ranks = plan.layout.world_size();
  if (plan.world == WorldKind::sim || (ranks <= process_ranks_max && plan.job.steps <= process_steps_max)) return {};
  return fmt::format(
      "the plan runs {} real ranks for {} steps: shrinking would run it dozens of times, so plans of the process world "
      "may have {} ranks and {} steps; see whether it fails in the sim world too (firedrill run {} --world sim --out "
      "DIR) and shrink that",
      ranks, plan.job.steps, process_ranks_max, process_steps_max,
      plan.scenario_path.empty() ? "SCENARIO" : plan.scenario_path);
}

// Beside the plan: shrunk.yaml for plan.json, NAME.shrunk.yaml for NAME.plan.json.
fs::path target_of(const fs::path& plan_file, const fs::path& out) {
  if (!out.empty()) return out / "shrunk.yaml";
  std::string name = plan_file.filename().string();
  for (const std::string_view ending : {".json", "plan"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return plan_file.parent_path() / (name + (name.empty() || name.ends_with('.') ? "" : ".") + "shrunk.yaml");
}

nlohmann::ordered_json size_of(const Plan& plan) {
  return {{"faults", plan.faults.size()},
          {"steps", plan.job.steps},
          {"ranks", plan.layout.world_size()},
          {"words", size_in_words(plan)}};
}

void fill(Report& report, const Plan& before, const Shrunk& shrunk, const Failure& failure, const fs::path& file) {
  const Plan& after = shrunk.plan;
  const std::string mutant = after.mutant.empty() ? "" : fmt::format(" --mutant {}", after.mutant);
  const std::string reproduce = fmt::format("firedrill run {}{}", file.string(), mutant);
  report.more["property"] = failure.property;
  report.more["evidence"] = failure.evidence;
  report.more["before"] = size_of(before);
  report.more["after"] = size_of(after);
  report.more["trials"] = shrunk.trials;
  report.more["seconds"] = shrunk.seconds;
  report.more["complete"] = shrunk.complete;
  report.more["shrunk"] = file.string();
  report.more["reproduce"] = reproduce;
  report.lines.push_back(fmt::format("before: {}", size_in_words(before)));
  report.lines.push_back(fmt::format("after:  {}", size_in_words(after)));
  for (const FaultSpec& fault : after.faults) report.lines.push_back(fmt::format("        {}", describe(fault)));
  report.lines.push_back(fmt::format("fails {}: {}", failure.property, failure.evidence));
  report.lines.push_back(fmt::format("{} runs, {:.2f} s; {}", shrunk.trials, shrunk.seconds,
                                     shrunk.complete ? "nothing simpler fails in this way"
                                                     : "ended by a bound (--trials, --seconds): there may be more"));
  report.lines.push_back(fmt::format("written: {}", file.string()));
  report.lines.push_back(fmt::format("reproduce: {}", reproduce));
}

// Errors: bad input, and what the runs say.
Status shrink_into(Report& report, const Plan& plan, const ShrinkArguments& arguments, const fs::path& file,
                   Session& session) {
  FD_TRY(Failure failure, failure_of(session, plan));
  if (failure.property.empty()) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("{} does not fail: there is nothing to shrink", arguments.given),
                 .hint = "`firedrill replay` shows what it does; --mutant gives it a broken engine part"};
  }
  if (!arguments.property.empty()) failure.property = arguments.property;
  ShrinkBounds bounds = arguments.bounds;
  if (plan.world == WorldKind::process) bounds.trials_max = std::min(bounds.trials_max, process_trials_max);
  FD_TRY(Shrunk shrunk, shrink(session, plan, failure.property, bounds));
  shrunk.plan = expecting(std::move(shrunk.plan), failure.property);
  failure.evidence = shrunk.failure.evidence;
  const std::vector<fs::path> jobs = job_files_of(plan, jobs_directory_of(plan.scenario_path));
  FD_TRY_VOID(write_scenario(shrunk.plan, file, jobs, words_about(plan, shrunk.plan, failure)));
  fill(report, plan, shrunk, failure, file);
  return {};
}

VerbResult work(const ShrinkArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  std::optional<Plan> plan = read_given_plan(arguments.given, result.mistakes);
  if (!common.set.empty()) result.mistakes.emplace_back("--set does not apply to a plan: its choices are made");
  if (!arguments.property.empty() && arguments.property != failed_liveness &&
      find_property(arguments.property) == nullptr) {
    result.mistakes.push_back(
        fmt::format("--property {}: there is no such property; see `firedrill list properties`", arguments.property));
  }
  if (plan) {
    if (const std::string reason = too_large(*plan); !reason.empty()) result.mistakes.push_back(reason);
  }
  if (!result.mistakes.empty()) return result;
  if (common.seed) plan->seed = *common.seed;
  if (!common.mutant.empty()) plan->mutant = common.mutant;

  Progress progress(streams, 1, common.quiet);
  progress.doing(fmt::format("shrinking {}", size_in_words(*plan)));
  Session session({.golden_directory = golden_directory_of(plan->scenario_path)});
  const fs::path file = target_of(plan_file_of(arguments.given), common.out);
  Report& report = result.report;
  report.seed = plan->seed;
  const Status done = shrink_into(report, *plan, arguments, file, session);
  progress.done(done ? "shrunk" : "not shrunk");
  if (!done && done.failed_with(Code::invalid_input)) {
    result.mistakes.push_back(describe(done.error()));
    return result;
  }
  if (!done) report.lines.push_back(fmt::format("error     {}", describe(done.error())));
  report.environment.numerics_key = session.numerics_key(plan->job);
  report.exit_code = done ? 0 : 4;
  report.verdict = verdict_of_exit_code(report.exit_code);
  return result;
}

}  // namespace

Work add_shrink(CLI::App& app) {
  auto arguments = std::make_shared<ShrinkArguments>();
  app.add_option("plan", arguments->given, "A folder that a run was kept in, or a plan file")->required();
  app.add_option("--property", arguments->property, "What must still fail (default: the first one that does)");
  app.add_option("--trials", arguments->bounds.trials_max, "At most so many simpler plans are run")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--seconds", arguments->bounds.seconds_max, "At most so long")
      ->check(CLI::Range(0.0, 1e9))
      ->check([](const std::string& text) {
        return std::isnan(std::strtod(text.c_str(), nullptr)) ? "--seconds is no number: give one such as 60" : "";
      })
      ->capture_default_str();
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
