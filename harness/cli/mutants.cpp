// firedrill mutants [NAME...]: runs each broken engine part against plans drawn as `explore` draws them, until a
// property catches it. A mutant that survives shows a hole in the checks: exit 2.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "engine/base/text.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/mutants_report.h"
#include "harness/cli/pool.h"
#include "harness/cli/progress.h"
#include "harness/cli/verb.h"
#include "harness/explore/shrink/scenario_text.h"
#include "harness/explore/swarm/swarm.h"
#include "harness/mutants/mutants.h"
#include "harness/run/random_faults.h"

namespace firedrill {
namespace {

struct MutantArguments {
  std::vector<std::string> names;
  std::string scenario = "scenarios/quickstart.yaml";
  std::int64_t trials = 10'000;
  bool shrink = true;
  bool prepared = false;
};

// What a mutant may ask for: its job, and with --prepared also where and how it is disturbed.
Preparation asked_for(const Mutant& mutant, const MutantArguments& arguments) {
  return arguments.prepared ? mutant.preparation : Preparation{.job = mutant.preparation.job};
}

Result<Ground> ground_of(const Preparation& preparation, const Plan& base, const MutantArguments& arguments) {
  FD_TRY(Ground ground, ground_for(preparation, base, jobs_directory_of(arguments.scenario)));
  if (arguments.prepared) return ground;
  const auto swarm = std::make_shared<Swarm>(ground.base, SwarmOptions{.beyond_budget = false});
  ground.draw = [swarm](Session& session, std::uint64_t seed) -> Result<Plan> {
    FD_TRY(Drawn drawn, swarm->draw(session, seed));
    return std::move(drawn.plan);
  };
  return ground;
}

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

// The command that gives one outcome again: a plan that was kept, else the hunt from the seed on.
std::string reproduce_of(const HuntOutcome& outcome, const MutantArguments& arguments, const CommonOptions& common,
                         std::uint64_t seed) {
  if (outcome.hunt.caught && !common.out.empty()) {
    return fmt::format("firedrill replay {}", (common.out / (outcome.name() + ".plan.json")).string());
  }
  const bool control = outcome.mutant == nullptr;
  std::string line = fmt::format("firedrill mutants {} --seed {}", control ? outcome.beside : outcome.name(),
                                 control && outcome.hunt.caught ? outcome.hunt.seed : seed);
  const MutantArguments defaults;
  if (arguments.scenario != defaults.scenario) line += fmt::format(" --scenario {}", arguments.scenario);
  if (arguments.prepared) line += " --prepared";
  if (arguments.trials != defaults.trials) line += fmt::format(" --trials {}", arguments.trials);
  for (const std::string& setting : common.set) line += fmt::format(" --set '{}'", setting);
  return line;
}

// What caught a mutant must happen again, or nothing that is said of it means anything; then it is made simple.
Status look_closer(HuntOutcome& outcome, Session& session, const MutantArguments& arguments) {
  FD_TRY(const bool same, repeats(session, outcome.hunt.plan));
  if (!same) return Error{.code = Code::internal, .message = "the plan that caught it gives another history each time"};
  if (!arguments.shrink) return {};
  FD_TRY(outcome.shrunk, shrink(session, outcome.hunt.plan, outcome.hunt.property));
  return {};
}

void hunt_one(HuntOutcome& outcome, Session& session, const Result<Ground>& ground, const MutantArguments& arguments,
              std::int64_t trials) {
  const auto work = [&]() -> Status {
    if (!ground) return ground.error();
    const std::string_view mutant = outcome.mutant == nullptr ? "" : outcome.mutant->name;
    FD_TRY(outcome.hunt, hunt(session, {*ground}, mutant, ground->base.seed, trials));
    return outcome.hunt.caught && outcome.mutant != nullptr ? look_closer(outcome, session, arguments) : Status();
  };
  if (const Status done = work(); !done) outcome.error = describe(done.error());
}

// What the right engine must come through: on each ground as many plans as any mutant there needed to be caught.
struct Control {
  Preparation preparation;
  std::int64_t trials = control_trials_min;
  HuntOutcome outcome = {};
};

std::vector<Control> controls_for(const std::vector<HuntOutcome>& outcomes, const MutantArguments& arguments) {
  std::vector<Control> controls(1);  // the plain ground is always among them
  controls.front().outcome.beside = outcomes[1].mutant->name;
  for (const HuntOutcome& outcome : outcomes) {
    if (outcome.mutant == nullptr) continue;
    const Preparation asked = asked_for(*outcome.mutant, arguments);
    const auto same = [&](const Control& control) { return control.preparation == asked; };
    auto known = std::ranges::find_if(controls, same);
    if (known == controls.end()) known = controls.insert(controls.end(), {.preparation = asked});
    known->outcome.beside = outcome.mutant->name;
    if (outcome.hunt.caught) known->trials = std::max(known->trials, outcome.hunt.trials);
  }
  return controls;
}

// All controls as one: the first that fails, else all their trials.
HuntOutcome summed_up(std::vector<Control>& controls) {
  std::int64_t trials = 0;
  for (Control& control : controls) {
    if (control.outcome.hunt.caught || !control.outcome.error.empty()) return std::move(control.outcome);
    trials += control.outcome.hunt.trials;
  }
  HuntOutcome all;
  all.hunt.trials = trials;
  return all;
}

// The control stands first and is run last: only then it is known how many plans it must pass.
void hunt_all(std::vector<HuntOutcome>& outcomes, Result<std::vector<Canary>>& canaries, const Plan& base,
              const MutantArguments& arguments, const CommonOptions& common, Streams streams) {
  Progress progress(streams, outcomes.size(), common.quiet);
  PoolOptions pool{.jobs = common.jobs};
  pool.session.golden_directory = golden_directory_of(arguments.scenario);
  const auto hunt_on_ground = [&](HuntOutcome& outcome, const Preparation& preparation, Session& session,
                                  std::int64_t trials) {
    hunt_one(outcome, session, ground_of(preparation, base, arguments), arguments, trials);
  };
  run_pool(outcomes.size() - 1, pool, [&](std::size_t i, Session& session) {
    HuntOutcome& outcome = outcomes[i + 1];
    progress.doing(outcome.name());
    hunt_on_ground(outcome, asked_for(*outcome.mutant, arguments), session, arguments.trials);
    progress.done(fmt::format("{} {}", outcome.hunt.caught ? "caught" : "ran", outcome.name()));
  });
  progress.doing("the right engine, as control");
  std::vector<Control> controls = controls_for(outcomes, arguments);
  run_pool(controls.size() + 1, pool, [&](std::size_t i, Session& session) {
    if (i == controls.size()) {
      canaries = fly_canaries(session, base);
    } else {
      hunt_on_ground(controls[i].outcome, controls[i].preparation, session, controls[i].trials);
    }
  });
  outcomes.front() = summed_up(controls);
  progress.done("ran the right engine");
}

// A plan for everything that was caught, and a scenario for what was made simple of it, in the new directory.
Status keep_plans(const std::vector<HuntOutcome>& outcomes, const MutantArguments& arguments,
                  const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);  // writing says what is wrong
  for (const HuntOutcome& outcome : outcomes) {
    const Hunt& hunt = outcome.hunt;
    if (hunt.caught) FD_TRY_VOID(write_plan(hunt.plan, directory / (outcome.name() + ".plan.json")));
    if (!outcome.shrunk) continue;
    const Plan& simple = outcome.shrunk->plan;
    FD_TRY_VOID(write_scenario(expecting(simple, hunt.property), directory / (outcome.name() + ".shrunk.yaml"),
                               job_files_of(hunt.plan, jobs_directory_of(arguments.scenario)),
                               words_about(hunt.plan, simple, outcome.shrunk->failure)));
  }
  return {};
}

VerbResult work(const MutantArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  std::vector<HuntOutcome> outcomes(1);
  for (const Mutant* mutant : chosen(arguments, common, result.mistakes)) outcomes.push_back({.mutant = mutant});
  const auto scenarios = load_scenarios({arguments.scenario}, common, WorldKind::sim, result.mistakes);
  if (!result.mistakes.empty()) return result;

  const Plan base = make_plan(scenarios.front(), {.seed = common.seed, .settings = common.set});
  Result<std::vector<Canary>> canaries = std::vector<Canary>{};
  hunt_all(outcomes, canaries, base, arguments, common, streams);

  Report& report = result.report;
  report.seed = base.seed;
  for (const char* list : {"killed", "survived", "canaries"}) report.more[list] = nlohmann::ordered_json::array();
  std::vector<int> codes;
  std::vector<std::string> again;
  for (const HuntOutcome& outcome : outcomes) {
    const std::string reproduce = reproduce_of(outcome, arguments, common, base.seed);
    if (!outcome.error.empty()) {
      report.lines.push_back(fmt::format("error     {}: {}", outcome.name(), outcome.error));
      codes.push_back(4);
      continue;
    }
    codes.push_back(outcome.mutant == nullptr ? add_control(report, outcome) : add_mutant(report, outcome, reproduce));
    if (codes.back() != 0 || (outcome.hunt.caught && !common.out.empty())) again.push_back("reproduce: " + reproduce);
  }
  if (canaries) {
    for (const Canary& canary : *canaries) codes.push_back(add_canary(report, canary));
  } else {
    report.lines.push_back(fmt::format("error     canaries: {}", describe(canaries.error())));
    codes.push_back(4);
  }
  add_summary(report, outcomes);
  if (!common.out.empty()) {
    if (const Status kept = keep_plans(outcomes, arguments, common.out); !kept) {
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
  app.add_flag("--prepared", arguments->prepared,
               "Faults, layouts and job options as each mutant asks for them, not drawn as `explore` draws them");
  app.add_flag("!--no-shrink", arguments->shrink, "Leave the plans that catch them as they are");
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
