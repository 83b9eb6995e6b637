#include "harness/run/hunt.h"

#include <chrono>

#include "engine/base/rng.h"
#include "engine/base/text.h"
#include "harness/run/random_faults.h"

namespace firedrill {

std::optional<Catch> catch_of(RunVerdict verdict, std::span<const Judged> judged, std::string_view expected) {
  for (const Judged& each : judged) {
    if (each.verdict.outcome == Outcome::fail) return Catch{each.property->name, each.verdict.evidence};
  }
  if (verdict == RunVerdict::liveness && expected == "liveness") return Catch{"liveness", ""};
  return std::nullopt;
}

namespace {

// One trial more.
Status try_plan(Session& session, Plan plan, const Mutant* broken, Hunt& hunt) {
  FD_TRY(const Trial trial, session.trial(plan));
  ++hunt.trials;
  if (trial.verdict == RunVerdict::pass) return {};
  if (broken == nullptr) {
    hunt.caught = true;
    hunt.property = trial.verdict == RunVerdict::liveness ? "liveness" : std::string(trial.property);
    hunt.evidence = trial.evidence;
  } else {
    const std::vector<Judged> judged = judge_all(Case(session.history(), plan));
    const std::optional<Catch> found = catch_of(trial.verdict, judged, broken->caught_by);
    if (!found) return {};
    std::string evidence = found->evidence.empty() ? trial.evidence : std::string(found->evidence);
    Plan right = plan;
    right.mutant.clear();
    FD_TRY(const Trial control, session.trial(right));
    if (control.verdict != RunVerdict::pass) return {};
    FD_TRY_VOID(session.trial(plan));  // its history is what is looked at next
    hunt.caught = true;
    hunt.property = found->property;
    hunt.evidence = std::move(evidence);
  }
  hunt.verdict = trial.verdict;
  hunt.plan = std::move(plan);
  return {};
}

std::vector<std::string> job_settings_of(const Plan& plan) {
  std::vector<std::string> list;
  for (const std::string& setting : plan.settings) {
    if (setting.starts_with("job.")) list.push_back(setting);
  }
  return list;
}

Result<Plan> drawn(Session& session, const Ground& ground, std::uint64_t seed) {
  if (ground.disturb == nullptr && ground.draw) return ground.draw(session, seed);
  if (ground.disturb == nullptr) return random_faults(ground.base, seed);
  Plan plan = ground.base;
  plan.seed = seed;
  plan.faults.clear();
  Rng rng(seed * 0xD1B54A32D192ED03ULL + 11);
  ground.disturb(rng, plan);
  return plan;
}

}  // namespace

Result<Ground> ground_for(const Preparation& preparation, const Plan& base, const std::filesystem::path& jobs) {
  Ground ground{.base = base, .disturb = preparation.disturb};
  Plan& plan = ground.base;
  if (!preparation.job.empty()) {
    Loaded<Job> job = load_job(jobs / (std::string(preparation.job) + ".yaml"), {.set = job_settings_of(base)});
    if (!job) return Error{.code = Code::invalid_input, .message = join(job.mistakes, "\n")};
    plan.job = std::move(*job);
    plan.job.data.corpus = std::filesystem::absolute(plan.job.data.corpus).lexically_normal().string();
    plan.run_id = run_id_of(plan.job);
    plan.layout = {};
    plan.recovery.layout = {};
  }
  if (preparation.change) preparation.change(plan.job);
  if (preparation.layout) plan.layout = *preparation.layout;
  if (preparation.restarts) plan.recovery.layout = preparation.restarts;
  for (const int attempt : {1, 2}) {
    const std::vector<std::string> mistakes = mistakes_in(plan.layout_of(attempt), plan.job);
    if (!mistakes.empty()) return Error{.code = Code::invalid_input, .message = join(mistakes, "\n")};
  }
  return ground;
}

Result<std::vector<Ground>> grounds_for(const std::vector<const Mutant*>& mutants, const Plan& base,
                                        const std::filesystem::path& jobs) {
  std::vector<Preparation> preparations = preparations_of(mutants);
  std::erase(preparations, Preparation{});
  std::vector<Ground> grounds = {{.base = base}};
  for (const Preparation& preparation : preparations) {
    FD_TRY(Ground ground, ground_for(preparation, base, jobs));
    grounds.push_back(std::move(ground));
  }
  return grounds;
}

Result<Hunt> hunt(Session& session, const std::vector<Ground>& grounds, std::string_view mutant, std::uint64_t seed,
                  std::int64_t trials_max) {
  const auto began = std::chrono::steady_clock::now();
  const Mutant* broken = find_mutant(mutant);
  Hunt hunt;
  for (std::int64_t seeds = 0; !hunt.caught && seeds < trials_max; ++seeds) {
    for (std::size_t i = 0; !hunt.caught && i < grounds.size(); ++i) {
      FD_TRY(Plan plan, drawn(session, grounds[i], seed + static_cast<std::uint64_t>(seeds)));
      plan.mutant = mutant;
      hunt.seed = seed + static_cast<std::uint64_t>(seeds);
      FD_TRY_VOID(try_plan(session, std::move(plan), broken, hunt));
    }
  }
  hunt.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return hunt;
}

}  // namespace firedrill
