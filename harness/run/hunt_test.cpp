#include "harness/run/hunt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firedrill {
namespace {

constexpr Property first{.name = "first", .summary = "", .judge = nullptr};
constexpr Property second{.name = "second", .summary = "", .judge = nullptr};

std::vector<Judged> judged_as(Outcome of_first, Outcome of_second) {
  std::vector<Judged> judged(2);
  judged[0].property = &first;
  judged[0].verdict.outcome = of_first;
  judged[0].verdict.evidence = "seen by the first";
  judged[1].property = &second;
  judged[1].verdict.outcome = of_second;
  judged[1].verdict.evidence = "seen by the second";
  return judged;
}

TEST(Hunt, AMutantIsCaughtByAPropertyThatFailedAndNotByOneThatIsUnknown) {
  const auto judged = judged_as(Outcome::unknown, Outcome::fail);
  const auto found = catch_of(RunVerdict::fail, judged, "first");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->property, "second");
  EXPECT_EQ(found->evidence, "seen by the second");
  EXPECT_FALSE(catch_of(RunVerdict::unknown, judged_as(Outcome::unknown, Outcome::pass), "first"));
}

TEST(Hunt, AFailedCheckOfTheEngineCatchesNoMutant) {
  // The verdict is a failure, and no property says of what.
  EXPECT_FALSE(catch_of(RunVerdict::fail, judged_as(Outcome::pass, Outcome::unknown), "first"));
}

TEST(Hunt, AJobThatNeverEndsCatchesOnlyAMutantThatIsExpectedToShowSo) {
  const auto judged = judged_as(Outcome::pass, Outcome::pass);
  EXPECT_FALSE(catch_of(RunVerdict::liveness, judged, "first"));
  const auto found = catch_of(RunVerdict::liveness, judged, "liveness");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->property, "liveness");
}

Plan quiet() {
  Loaded<Scenario> loaded = load_scenario("scenarios/quickstart.yaml");
  Plan plan = make_plan(*loaded, {.settings = {"job.steps=6", "layout.dp=2"}});
  plan.faults.clear();
  return plan;
}

TEST(Hunt, AMutantMayNameItsJobAndItsLayouts) {
  const Preparation preparation{.job = "nano-hybrid", .layout = Layout{.tp = 2}, .restarts = Layout{.dp = 2}};
  const Result<Ground> ground = ground_for(preparation, quiet(), "scenarios/jobs");
  ASSERT_TRUE(ground) << describe(ground.error());
  EXPECT_EQ(ground->base.job.name, "nano-hybrid");
  EXPECT_EQ(ground->base.job.steps, 6) << "settings of the job hold for the other one, too";
  EXPECT_EQ(ground->base.run_id, run_id_of(ground->base.job));
  EXPECT_EQ(to_string(ground->base.layout_of(1)), "tp=2");
  EXPECT_EQ(to_string(ground->base.layout_of(2)), "dp=2");
  EXPECT_EQ(ground_for({.job = "micro"}, quiet(), "scenarios/jobs").error().code, Code::invalid_input);
  const Result<Ground> wide = ground_for({.layout = Layout{.tp = 2}}, quiet(), "scenarios/jobs");
  ASSERT_FALSE(wide);
  EXPECT_THAT(wide.error().message, testing::HasSubstr("layout.tp is 2"));
}

TEST(Hunt, TheRightEngineRunsOnEveryGroundOnce) {
  const Mutant plain{};
  const Mutant prepared{.preparation = {.layout = Layout{.dp = 4}}};
  const Result<std::vector<Ground>> grounds = grounds_for({&plain, &prepared, &prepared}, quiet(), "scenarios/jobs");
  ASSERT_TRUE(grounds);
  EXPECT_EQ(grounds->size(), 2);
}

TEST(Hunt, AMutantMayDrawFaultsOfItsOwn) {
  const auto kill_in_step = [](Rng& rng, Plan& plan) {
    const auto rank = static_cast<int>(rng.below(2));
    plan.faults = {FaultSpec{.at = {.attempt = 1, .rank = rank, .step = 5, .phase = Phase::forward}}};
    plan.recovery.budget = 1;
  };
  Session session({.memo = false, .probes = false});
  const Result<Hunt> found = hunt(session, {{.base = quiet(), .disturb = kill_in_step}}, "optimizer_step_reset", 7, 1);
  ASSERT_TRUE(found) << describe(found.error());
  EXPECT_TRUE(found->caught);
  EXPECT_EQ(found->plan.faults.size(), 1);
  EXPECT_EQ(found->plan.seed, 7);
}

}  // namespace
}  // namespace firedrill
