#include "harness/run/hunt.h"

#include <chrono>

#include "harness/run/random_kills.h"

namespace firedrill {

Result<Hunt> hunt(Session& session, const Plan& base, std::string_view mutant, std::uint64_t seed,
                  std::int64_t trials_max) {
  const auto began = std::chrono::steady_clock::now();
  Hunt hunt;
  while (!hunt.caught && hunt.trials < trials_max) {
    Plan plan = random_kills(base, seed + static_cast<std::uint64_t>(hunt.trials));
    plan.mutant = mutant;
    FD_TRY(const Trial trial, session.trial(plan));
    ++hunt.trials;
    hunt.caught = trial.verdict == RunVerdict::fail || trial.verdict == RunVerdict::liveness;
    if (!hunt.caught) continue;
    hunt.property = trial.verdict == RunVerdict::liveness ? "liveness" : std::string(trial.property);
    hunt.evidence = trial.evidence;
    hunt.plan = std::move(plan);
  }
  hunt.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return hunt;
}

}  // namespace firedrill
