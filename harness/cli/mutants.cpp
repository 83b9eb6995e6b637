// firedrill mutants [NAME...]: runs each broken engine part against random kills until a property catches it. A mutant
// that survives shows a hole in the checks: exit 2.
#include <fmt/format.h>

#include <memory>

#include "engine/base/text.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/pool.h"
#include "harness/cli/progress.h"
#include "harness/cli/verb.h"
#include "harness/mutants/mutants.h"
#include "harness/run/hunt.h"
#include "harness/run/random_kills.h"

namespace firedrill {
namespace {

struct MutantArguments {
  std::vector<std::string> names;
  std::string scenario = "scenarios/quickstart.yaml";
  std::int64_t trials = 1000;
};

// A catch means nothing if the right engine is caught too, so it goes first, over as many plans.
constexpr std::int64_t control_trials = 50;

std::vector<const Mutant*> chosen(const MutantArguments& arguments, const CommonOptions& common,
                                  std::vector<std::string>& mistakes) {
  std::vector<std::string> known;
  for (const Mutant& mutant : mutants()) known.emplace_back(mutant.name);
  std::vector<const Mutant*> list;
  for (const std::string& name : arguments.names) {
    if (const Mutant* mutant = find_mutant(name)) {
      list.push_back(mutant);
      continue;
    }
    const auto near = nearest(name, known);
    mistakes.push_back(fmt::format("there is no mutant `{}`: {}", name,
                                   near ? fmt::format("did you mean `{}`?", *near) : "see `firedrill list mutants`"));
  }
  if (arguments.names.empty()) {
    for (const Mutant& mutant : mutants()) list.push_back(&mutant);
  }
  std::erase_if(list, [&common](const Mutant* mutant) {
    return !common.filter.empty() && !matches_glob(common.filter, mutant->name);
  });
  if (list.empty() && mistakes.empty()) mistakes.push_back("no mutant is left to run");
  return list;
}

struct Outcome {
  const Mutant* mutant = nullptr;  // nullptr: the right engine
  Hunt hunt;
  std::string error;
};

int add_to(Report& report, const Outcome& outcome, std::int64_t trials_max) {
  const Hunt& hunt = outcome.hunt;
  const std::string name = outcome.mutant == nullptr ? "the right engine" : std::string(outcome.mutant->name);
  if (!outcome.error.empty()) {
    report.lines.push_back(fmt::format("error     {}: {}", name, outcome.error));
    return 4;
  }
  if (outcome.mutant == nullptr) {
    if (!hunt.caught) return 0;
    report.lines.push_back(fmt::format("FAIL      {} fails {} in trial {} (seed {}), so no catch means anything: {}",
                                       name, hunt.property, hunt.trials, hunt.plan.seed, hunt.evidence));
    return 2;
  }
  if (!hunt.caught) {
    report.more["survived"].push_back(name);
    report.lines.push_back(
        fmt::format("SURVIVED  {}: {} trials, expected of {}", name, trials_max, outcome.mutant->caught_by));
    return 2;
  }
  report.more["killed"].push_back({{"mutant", name},
                                   {"property", hunt.property},
                                   {"trials", hunt.trials},
                                   {"seed", hunt.plan.seed},
                                   {"evidence", hunt.evidence}});
  report.lines.push_back(
      fmt::format("killed    {:<32} by {} in trial {}: {}", name, hunt.property, hunt.trials, hunt.evidence));
  return 0;
}

VerbResult work(const MutantArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  std::vector<Outcome> outcomes(1);
  for (const Mutant* mutant : chosen(arguments, common, result.mistakes)) outcomes.push_back({mutant, {}, ""});
  const auto scenarios = load_scenarios({arguments.scenario}, common, WorldKind::sim, result.mistakes);
  if (!result.mistakes.empty()) return result;

  const Plan base = make_plan(scenarios.front(), {.seed = common.seed, .settings = common.set});
  Report& report = result.report;
  {
    Progress progress(streams, outcomes.size(), common.quiet);
    PoolOptions pool{.jobs = common.jobs};
    pool.session.golden_directory = golden_directory_of(arguments.scenario);
    run_pool(outcomes.size(), pool, [&](std::size_t i, Session& session) {
      Outcome& outcome = outcomes[i];
      const std::string_view name = outcome.mutant == nullptr ? "" : outcome.mutant->name;
      progress.doing(name.empty() ? "the right engine, as control" : name);
      Result<Hunt> found =
          hunt(session, base, name, base.seed, outcome.mutant == nullptr ? control_trials : arguments.trials);
      if (found) {
        outcome.hunt = std::move(*found);
      } else {
        outcome.error = describe(found.error());
      }
      progress.done(
          fmt::format("{} {}", outcome.hunt.caught ? "caught" : "ran", name.empty() ? "the right engine" : name));
    });
  }
  report.more["killed"] = nlohmann::ordered_json::array();
  report.more["survived"] = nlohmann::ordered_json::array();
  report.more["canaries"] = nlohmann::ordered_json::array();
  std::vector<int> codes;
  for (const Outcome& outcome : outcomes) codes.push_back(add_to(report, outcome, arguments.trials));
  report.exit_code = combined_exit_code(codes);
  report.verdict = verdict_of_exit_code(report.exit_code);
  report.lines.push_back(fmt::format("{} of {} mutants killed", report.more["killed"].size(), outcomes.size() - 1));
  return result;
}

}  // namespace

Work add_mutants(CLI::App& app) {
  auto arguments = std::make_shared<MutantArguments>();
  app.add_option("name", arguments->names, "Mutants to run (default: all)");
  app.add_option("--scenario", arguments->scenario, "Gives job and layout; its faults are replaced by random kills")
      ->capture_default_str();
  app.add_option("--trials", arguments->trials, "Plans to try before a mutant counts as survived")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
