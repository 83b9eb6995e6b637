// firedrill sweep SCENARIO --fault KIND: one fault more at the 1st, 2nd, 3rd ... position until it no longer fires, and
// the certificate of that.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "engine/base/text.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/pool.h"
#include "harness/cli/progress.h"
#include "harness/cli/verb.h"
#include "harness/explore/sweep.h"

namespace firedrill {
namespace {

struct SweepArguments {
  std::string scenario;
  std::string fault;
  int times = 1;
  std::int64_t limit = SweepOptions{}.limit;
};

constexpr std::size_t failures_shown = 10;
constexpr std::size_t missed_shown = 10;

std::optional<FaultKind> kind_named(const std::string& name, std::vector<std::string>& mistakes) {
  std::vector<std::string> names;
  for (const FaultKindInfo& info : fault_kinds()) {
    if (info.name == name) return info.kind;
    names.emplace_back(info.name);
  }
  const auto near = nearest(name, names);
  mistakes.push_back(fmt::format("there is no fault `{}`: {}", name,
                                 near ? fmt::format("did you mean `{}`?", *near) : "see `firedrill list faults`"));
  return std::nullopt;
}

// All groups together.
struct Swept {
  std::int64_t positions = 0;
  std::map<SweepOutcome, std::int64_t> outcomes;
  std::vector<SweepFailure> failures;
  std::vector<std::string> errors;
  std::vector<std::string> missed;  // operations that no group can hit
  bool complete = true;
  std::size_t groups = 0;
  double seconds = 0.0;
};

// How many attempts the run takes without the fault, which must pass.
int attempts_without(Session& session, const Plan& base, Swept& swept) {
  const Result<Trial> trial = session.trial(base);
  if (!trial) {
    swept.errors.push_back(describe(trial.error()));
  } else if (trial->verdict != RunVerdict::pass) {
    swept.failures.push_back({base, trial->verdict, std::string(trial->property), trial->evidence});
  }
  return static_cast<int>(session.history().of(EventKind::attempt_started).size());
}

Swept sweep_all(const Plan& base, const SweepOptions& options, const PoolOptions& pool, Streams streams, bool quiet,
                std::vector<std::string>& mistakes) {
  const auto began = std::chrono::steady_clock::now();
  Swept swept;
  int attempts = 0;
  run_pool(1, {.jobs = 1, .session = pool.session},
           [&](std::size_t, Session& session) { attempts = attempts_without(session, base, swept); });
  if (!swept.errors.empty() || !swept.failures.empty()) {
    swept.complete = false;
    return swept;
  }
  const std::vector<FaultSpec> groups = sweep_groups(base, options, attempts);
  mistakes = mistakes_in_sweep(base, groups);
  if (!mistakes.empty()) return swept;
  run_pool(1, {.jobs = 1, .session = pool.session}, [&](std::size_t, Session& session) {
    Result<std::vector<std::string>> missed = operations_missed(session, base, options, groups);
    if (!missed) swept.errors.push_back(describe(missed.error()));
    swept.missed = std::move(missed).value_or({});
  });
  swept.complete = swept.missed.empty();
  std::vector<SweptGroup> results(groups.size());
  std::vector<std::string> errors(groups.size());
  {
    Progress progress(streams, groups.size(), quiet);
    run_pool(groups.size(), pool, [&](std::size_t i, Session& session) {
      Result<SweptGroup> group = sweep_group(session, base, groups[i], options);
      if (group) {
        results[i] = *std::move(group);
      } else {
        errors[i] = describe(group.error());
      }
      progress.done(describe(groups[i]));
    });
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    swept.positions += results[i].positions;
    for (const auto& [outcome, count] : results[i].outcomes) swept.outcomes[outcome] += count;
    for (SweepFailure& failure : results[i].failures) swept.failures.push_back(std::move(failure));
    swept.complete = swept.complete && results[i].complete;
    if (!errors[i].empty()) swept.errors.push_back(errors[i]);
  }
  swept.groups = groups.size();
  swept.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return swept;
}

void write_certificate(Report& report, const SweepArguments& arguments, const Swept& swept) {
  report.more["scenario"] = arguments.scenario;
  report.more["fault"] = arguments.fault;
  report.more["times"] = arguments.times;
  report.more["positions"] = swept.positions;
  report.more["outcomes"] = nlohmann::ordered_json::object();
  std::vector<std::string> classes;
  for (const auto& [outcome, count] : swept.outcomes) {
    report.more["outcomes"][std::string(to_string(outcome))] = count;
    classes.push_back(fmt::format("{} {}", to_string(outcome), count));
  }
  report.more["failed"] = swept.failures.size();
  report.more["complete"] = swept.complete;
  report.more["missed"] = swept.missed;
  report.more["failures"] = nlohmann::ordered_json::array();
  if (!swept.failures.empty()) classes.push_back(fmt::format("FAILED {}", swept.failures.size()));
  report.lines.push_back(fmt::format("{} in {}: {} positions in {} places, {:.1f} s", arguments.fault,
                                     arguments.scenario, swept.positions, swept.groups, swept.seconds));
  report.lines.push_back(fmt::format("outcomes  {}", classes.empty() ? "none" : join(classes, ", ")));
  report.lines.push_back(swept.complete ? "complete  every place was gone through until the fault no longer fired"
                                        : "INCOMPLETE: some positions were not tried");
  for (const SweepFailure& failure : swept.failures) {
    const std::string fault = failure.plan.faults.empty() ? "no fault" : describe(failure.plan.faults.back());
    report.more["failures"].push_back({{"fault", fault},
                                       {"verdict", to_string(failure.verdict)},
                                       {"property", failure.property},
                                       {"evidence", failure.evidence},
                                       {"reproduce", reproduce_line(failure.plan)}});
    if (report.more["failures"].size() > failures_shown) continue;
    report.lines.push_back(
        fmt::format("{}  {}: {} {}", to_string(failure.verdict), fault, failure.property, failure.evidence));
  }
  for (std::size_t i = 0; i < std::min(swept.missed.size(), missed_shown); ++i) {
    report.lines.push_back("missed    " + swept.missed[i] + ", which the table of operations does not have");
  }
  for (const std::string& error : swept.errors) report.lines.push_back("error     " + error);
  if (!swept.failures.empty()) {
    report.lines.push_back("reproduce: " + reproduce_line(swept.failures.front().plan));
  }
}

VerbResult work(const SweepArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  const auto kind = kind_named(arguments.fault, result.mistakes);
  const auto scenarios = load_scenarios({arguments.scenario}, common, WorldKind::sim, result.mistakes);
  if (!result.mistakes.empty()) return result;
  const SweepOptions options{.kind = *kind, .times = arguments.times, .limit = arguments.limit};
  const Plan base =
      sweep_base(make_plan(scenarios.front(), {.seed = common.seed, .mutant = common.mutant, .settings = common.set}),
                 options.kind);
  PoolOptions pool{.jobs = common.jobs};
  pool.session.golden_directory = golden_directory_of(arguments.scenario);
  const Swept swept = sweep_all(base, options, pool, streams, common.quiet, result.mistakes);
  if (!result.mistakes.empty()) return result;
  Report& report = result.report;
  report.seed = base.seed;
  write_certificate(report, arguments, swept);
  std::vector<int> codes;
  for (const SweepFailure& failure : swept.failures) codes.push_back(exit_code_of(failure.verdict));
  if (!swept.complete || !swept.errors.empty()) codes.push_back(4);
  report.exit_code = combined_exit_code(codes);
  report.verdict = verdict_of_exit_code(report.exit_code);
  return result;
}

}  // namespace

Work add_sweep(CLI::App& app) {
  auto arguments = std::make_shared<SweepArguments>();
  app.add_option("scenario", arguments->scenario, "Gives job, layout and the faults beside the one that is swept")
      ->required();
  app.add_option("--fault", arguments->fault, "The kind; the scenario's own faults of that kind are left out")
      ->required();
  app.add_option("--times", arguments->times, "How often it fires from its position on; 0: without end")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--limit", arguments->limit, "Positions in one place; where there are more, the sweep is incomplete")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
