// The effective training-time ratio of long simulated runs against the published estimate (arXiv 2410.21680).
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "harness/run/run.h"
#include "harness/scenario/scenario.h"

namespace firedrill {
namespace {

using namespace std::chrono_literals;

// The quick start's job with steps of about a second, as long as they are on a cluster: 96 steps, a save every 8.
Plan long_run() {
  Loaded<Scenario> loaded = load_scenario("scenarios/quickstart.yaml");
  FD_CHECK(static_cast<bool>(loaded), "{}", loaded.mistakes.empty() ? "no scenario" : loaded.mistakes.front());
  Plan plan = make_plan(*loaded);
  plan.faults.clear();
  plan.job.steps = 96;
  plan.job.checkpoint.every = 8;
  plan.job.cluster.forward = 50ms;
  plan.job.cluster.backward = 150ms;
  plan.job.cluster.file_operation = 500us;
  plan.job.cluster.file_sync = 5ms;
  plan.job.cluster.failure_detection = 400ms;
  plan.run_id = run_id_of(plan.job);
  return plan;
}

struct Pace {
  double step = 0;
  double save = 0;
};

// Kills at exponential times, as places: what an attempt does until then follows from its pace. None while recovering.
Plan with_failures(Plan plan, const Pace& pace, double mean_time_between, std::uint64_t seed) {
  Rng rng(seed);
  plan.seed = seed;
  std::int64_t saved = 0;
  for (int attempt = 1; saved < plan.job.steps; ++attempt) {
    constexpr std::uint64_t grains = std::uint64_t{1} << 40;
    double left = -mean_time_between * std::log(static_cast<double>(rng.below(grains) + 1) / grains);
    FaultSpec kill;
    kill.at = {.attempt = attempt, .rank = static_cast<int>(rng.below(4)), .step = 0, .phase = Phase::none};
    for (std::int64_t step = saved + 1; step <= plan.job.steps && kill.at.phase == Phase::none; ++step) {
      kill.at.step = step;
      if (left < pace.step) {
        const double part = left / pace.step;
        kill.at.phase = part < 1.0 / 3 ? Phase::forward : part < 2.0 / 3 ? Phase::backward : Phase::exchange;
        break;
      }
      left -= pace.step;
      if (step % plan.job.checkpoint.every != 0) continue;
      if (left < pace.save) kill.at.phase = Phase::save;
      left -= pace.save;
      if (kill.at.phase == Phase::none) saved = step;
    }
    if (kill.at.phase != Phase::none) plan.faults.push_back(kill);
  }
  plan.recovery.budget = static_cast<int>(plan.faults.size());
  return plan;
}

Metrics must_run(Session& session, const Plan& plan) {
  const Result<Trial> trial = session.trial(plan);
  FD_CHECK(static_cast<bool>(trial), "{}", describe(trial.error()));
  EXPECT_EQ(trial->verdict, RunVerdict::pass) << "seed " << plan.seed << ": " << trial->evidence;
  return metrics_of(session.history(), plan, {});
}

TEST(EffectiveTrainingTime, OfTwoHundredRunsAgreesWithThePublishedEstimate) {
  const Plan base = long_run();
  Session session({.probes = false});
  const Metrics quiet = must_run(session, base);
  ASSERT_EQ(quiet.saves, 12);
  const Pace pace{.step = static_cast<double>(quiet.productive) / 96,
                  .save = static_cast<double>(quiet.checkpoint) / quiet.saves};
  const double mean_time_between = static_cast<double>(quiet.wall) / 3;
  constexpr int runs = 200;
  double ettr = 0;
  double restart = 0;
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    const Plan plan = with_failures(base, pace, mean_time_between, seed);
    const Metrics one = must_run(session, plan);
    EXPECT_EQ(one.failures, static_cast<int>(plan.faults.size())) << "seed " << seed;
    ettr += one.ettr / runs;
    restart += static_cast<double>(one.lost.detect + one.lost.restart + one.lost.restore);
    failures += one.failures;
  }
  const double estimate = published_ettr(1 / mean_time_between, restart / failures, 8 * pace.step, pace.save);
  RecordProperty("ettr", std::to_string(ettr));
  RecordProperty("estimate", std::to_string(estimate));
  EXPECT_GT(failures, 2 * runs);
  EXPECT_LT(ettr, 0.9) << "failures must cost something, or nothing was compared";
  EXPECT_NEAR(ettr, estimate, 0.05 * estimate);
}

}  // namespace
}  // namespace firedrill
