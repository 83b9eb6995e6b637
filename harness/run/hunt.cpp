#include "harness/run/hunt.h"

#include <chrono>

#include "harness/mutants/mutants.h"
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
    hunt.caught = true;
    hunt.property = found->property;
    hunt.evidence = found->evidence.empty() ? trial.evidence : std::string(found->evidence);
  }
  hunt.verdict = trial.verdict;
  hunt.plan = std::move(plan);
  return {};
}

}  // namespace

Result<Hunt> hunt(Session& session, const Plan& base, std::string_view mutant, std::uint64_t seed,
                  std::int64_t trials_max) {
  const auto began = std::chrono::steady_clock::now();
  const Mutant* broken = find_mutant(mutant);
  const std::vector<void (*)(Job&)> preparations = broken ? std::vector{broken->prepare} : job_preparations();
  Hunt hunt;
  for (std::int64_t seeds = 0; !hunt.caught && seeds < trials_max; ++seeds) {
    for (std::size_t i = 0; !hunt.caught && i < preparations.size(); ++i) {
      Plan prepared = base;
      if (preparations[i]) preparations[i](prepared.job);
      Plan plan = random_faults(std::move(prepared), seed + static_cast<std::uint64_t>(seeds));
      plan.mutant = mutant;
      FD_TRY_VOID(try_plan(session, std::move(plan), broken, hunt));
    }
  }
  hunt.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return hunt;
}

}  // namespace firedrill
