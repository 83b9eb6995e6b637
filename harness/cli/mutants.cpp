// firedrill mutants [NAME...]: runs each broken engine part against random faults until a property catches it. A mutant
// that survives shows a hole in the checks: exit 2.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "engine/base/text.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/pool.h"
#include "harness/cli/progress.h"
#include "harness/cli/verb.h"
#include "harness/mutants/mutants.h"
#include "harness/run/hunt.h"
#include "harness/run/random_faults.h"

namespace firedrill {
namespace {

struct MutantArguments {
  std::vector<std::string> names;
  std::string scenario = "scenarios/quickstart.yaml";
  std::int64_t trials = 1000;
};

// A catch means nothing if the right engine is caught too, so it runs the same plans: all that any mutant needed, and
// no fewer than these.
constexpr std::int64_t control_trials_min = 50;

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

  std::string name() const { return mutant == nullptr ? "right_engine" : std::string(mutant->name); }
};

// The command that gives one outcome again: a plan that was kept, else the hunt from the seed on.
std::string reproduce_of(const Outcome& outcome, const MutantArguments& arguments, const CommonOptions& common,
                         const std::string& first_mutant, std::uint64_t seed) {
  if (outcome.hunt.caught && !common.out.empty()) {
    return fmt::format("firedrill replay {}", (common.out / (outcome.name() + ".plan.json")).string());
  }
  const bool control = outcome.mutant == nullptr;
  std::string line = fmt::format("firedrill mutants {} --seed {}", control ? first_mutant : outcome.name(),
                                 control && outcome.hunt.caught ? outcome.hunt.plan.seed : seed);
  const MutantArguments defaults;
  if (arguments.scenario != defaults.scenario) line += fmt::format(" --scenario {}", arguments.scenario);
  if (arguments.trials != defaults.trials) line += fmt::format(" --trials {}", arguments.trials);
  for (const std::string& setting : common.set) line += fmt::format(" --set '{}'", setting);
  return line;
}

int add_control(Report& report, const Outcome& control) {
  const Hunt& hunt = control.hunt;
  report.more["control"] = {{"trials", hunt.trials}, {"verdict", to_string(hunt.verdict)}};
  if (!hunt.caught) {
    report.lines.push_back(fmt::format("passed    the right engine, as control: {} trials", hunt.trials));
    return 0;
  }
  const bool unknown = hunt.verdict == RunVerdict::unknown;
  report.lines.push_back(fmt::format(
      "{}      the right engine {} {} in trial {} (seed {}), so no catch means anything: {}",
      unknown ? "UNKNOWN" : "FAIL", unknown ? "cannot be judged on" : "fails",
      hunt.property.empty() ? "a check of its own" : hunt.property, hunt.trials, hunt.plan.seed, hunt.evidence));
  return unknown ? 4 : 2;
}

int add_mutant(Report& report, const Outcome& outcome, const std::string& reproduce) {
  const Hunt& hunt = outcome.hunt;
  const std::string_view expected = outcome.mutant->caught_by;
  if (!hunt.caught) {
    report.more["survived"].push_back(outcome.name());
    report.lines.push_back(
        fmt::format("SURVIVED  {}: {} trials, expected of {}", outcome.name(), hunt.trials, expected));
    return 2;
  }
  report.more["killed"].push_back({{"mutant", outcome.name()},
                                   {"property", hunt.property},
                                   {"expected", expected},
                                   {"trials", hunt.trials},
                                   {"seed", hunt.plan.seed},
                                   {"evidence", hunt.evidence},
                                   {"reproduce", reproduce}});
  report.lines.push_back(
      fmt::format("killed    {:<32} by {} in trial {}: {}", outcome.name(), hunt.property, hunt.trials, hunt.evidence));
  return 0;
}

Result<Hunt> hunt_on(const Result<std::vector<Ground>>& grounds, Session& session, std::string_view mutant,
                     std::int64_t trials) {
  if (!grounds) return grounds.error();
  return hunt(session, *grounds, mutant, grounds->front().base.seed, trials);
}

// One ground of a mutant, or all of the right engine.
void hunt_one(Outcome& outcome, Session& session, const Result<std::vector<Ground>>& grounds, std::int64_t trials,
              Progress& progress) {
  progress.doing(outcome.mutant == nullptr ? "the right engine, as control" : outcome.name());
  Result<Hunt> found = hunt_on(grounds, session, outcome.mutant == nullptr ? "" : outcome.mutant->name, trials);
  if (found) {
    outcome.hunt = std::move(*found);
  } else {
    outcome.error = describe(found.error());
  }
  progress.done(fmt::format("{} {}", outcome.hunt.caught ? "caught" : "ran", outcome.name()));
}

// The control stands first and is run last: only then it is known how many plans it must pass.
void hunt_all(std::vector<Outcome>& outcomes, const Plan& base, const MutantArguments& arguments,
              const CommonOptions& common, Streams streams) {
  Progress progress(streams, outcomes.size(), common.quiet);
  PoolOptions pool{.jobs = common.jobs};
  pool.session.golden_directory = golden_directory_of(arguments.scenario);
  const std::filesystem::path jobs = jobs_directory_of(arguments.scenario);
  std::vector<const Mutant*> hunted;
  for (std::size_t i = 1; i < outcomes.size(); ++i) hunted.push_back(outcomes[i].mutant);
  run_pool(hunted.size(), pool, [&](std::size_t i, Session& session) {
    Result<std::vector<Ground>> grounds = std::vector<Ground>{};
    Result<Ground> ground = ground_for(hunted[i]->preparation, base, jobs);
    if (ground) {
      grounds->push_back(std::move(*ground));
    } else {
      grounds = std::move(ground).error();
    }
    hunt_one(outcomes[i + 1], session, grounds, arguments.trials, progress);
  });
  std::int64_t trials = control_trials_min;
  for (const Outcome& outcome : outcomes) {
    if (outcome.hunt.caught) trials = std::max(trials, outcome.hunt.trials);
  }
  const Result<std::vector<Ground>> all = grounds_for(hunted, base, jobs);
  run_pool(1, pool, [&](std::size_t, Session& session) { hunt_one(outcomes.front(), session, all, trials, progress); });
}

// A plan for everything that was caught, in the new directory.
Status keep_plans(const std::vector<Outcome>& outcomes, const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);  // writing says what is wrong
  for (const Outcome& outcome : outcomes) {
    if (outcome.hunt.caught) FD_TRY_VOID(write_plan(outcome.hunt.plan, directory / (outcome.name() + ".plan.json")));
  }
  return {};
}

VerbResult work(const MutantArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  std::vector<Outcome> outcomes(1);
  for (const Mutant* mutant : chosen(arguments, common, result.mistakes)) outcomes.push_back({mutant, {}, ""});
  const auto scenarios = load_scenarios({arguments.scenario}, common, WorldKind::sim, result.mistakes);
  if (!result.mistakes.empty()) return result;

  const Plan base = make_plan(scenarios.front(), {.seed = common.seed, .settings = common.set});
  hunt_all(outcomes, base, arguments, common, streams);

  Report& report = result.report;
  report.seed = base.seed;
  for (const char* list : {"killed", "survived", "canaries"}) report.more[list] = nlohmann::ordered_json::array();
  std::vector<int> codes;
  std::vector<std::string> again;
  for (const Outcome& outcome : outcomes) {
    const std::string reproduce = reproduce_of(outcome, arguments, common, outcomes[1].name(), base.seed);
    if (!outcome.error.empty()) {
      report.lines.push_back(fmt::format("error     {}: {}", outcome.name(), outcome.error));
      codes.push_back(4);
      continue;
    }
    codes.push_back(outcome.mutant == nullptr ? add_control(report, outcome) : add_mutant(report, outcome, reproduce));
    if (codes.back() != 0 || (outcome.hunt.caught && !common.out.empty())) again.push_back("reproduce: " + reproduce);
  }
  report.lines.push_back(fmt::format("{} of {} mutants killed", report.more["killed"].size(), outcomes.size() - 1));
  if (!common.out.empty()) {
    if (const Status kept = keep_plans(outcomes, common.out); !kept) {
      report.lines.push_back(fmt::format("error     {}", describe(kept.error())));
      codes.push_back(4);
    }
  }
  report.exit_code = combined_exit_code(codes);
  report.verdict = verdict_of_exit_code(report.exit_code);
  report.lines.insert(report.lines.end(), again.begin(), again.end());
  return result;
}

}  // namespace

Work add_mutants(CLI::App& app) {
  auto arguments = std::make_shared<MutantArguments>();
  app.add_option("name", arguments->names, "Mutants to run (default: all)");
  app.add_option("--scenario", arguments->scenario, "Gives job and layout; its faults are replaced by random faults")
      ->capture_default_str();
  app.add_option("--trials", arguments->trials, "Plans to try before a mutant counts as survived")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
