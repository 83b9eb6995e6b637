// A failing plan becomes one with few and simple faults that fails in the same way; the right engine survives both.
#include "harness/explore/shrink/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/numerics.h"
#include "harness/explore/shrink/test_plans.h"
#include "harness/run/hunt.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

class Shrinking : public testing::Test {
 protected:
  Shrinking() { pin_numerics(); }

  // What catches the mutant among random plans.
  Hunt caught(const std::string& mutant) {
    const Result<Hunt> found = hunt(session_, {{.base = quiet_nano()}}, mutant, 1, 1000);
    FD_CHECK(static_cast<bool>(found) && found->caught, "{} survives", mutant);
    return *found;
  }

  Session session_{{.golden_directory = "golden"}};
};

TEST_F(Shrinking, TheFaultsThatMatterAreLeftAndNoMore) {
  // Fails where rank 2 is killed in step 3 or later, and a disk error comes in any attempt.
  const StillFails needs_two = [](const Plan& plan) -> Result<bool> {
    bool killed = false;
    bool error = false;
    for (const FaultSpec& fault : plan.faults) {
      killed = killed || (fault.kind == FaultKind::kill && fault.at.rank == 2 && fault.at.step >= 3);
      error = error || fault.kind == FaultKind::io_error;
    }
    return killed && error;
  };
  Plan plan = nano_plan();
  for (int i = 0; i < 5; ++i)
    plan.faults.push_back({.kind = FaultKind::io_error, .at = {.rank = 3, .step = 4, .phase = Phase::save, .nth = 3}});
  plan.recovery.budget = 20;
  const Result<Shrunk> shrunk = shrink_by(plan, needs_two);
  ASSERT_TRUE(shrunk);
  EXPECT_TRUE(shrunk->complete);
  ASSERT_EQ(shrunk->plan.faults.size(), 2U);
  EXPECT_EQ(shrunk->plan.faults[0].at.step, 3);
  EXPECT_EQ(shrunk->plan.faults[0].at.nth, 1);
  EXPECT_EQ(shrunk->plan.faults[1].at.rank, 0);
  EXPECT_EQ(shrunk->plan.recovery.budget, 2);
  EXPECT_LT(shrunk->plan.job.steps, 12);
}

TEST_F(Shrinking, ABoundEndsItAndItSaysSo) {
  const Result<Shrunk> shrunk =
      shrink_by(nano_plan(), [](const Plan&) -> Result<bool> { return false; }, {.trials_max = 3});
  ASSERT_TRUE(shrunk);
  EXPECT_FALSE(shrunk->complete);
  EXPECT_EQ(shrunk->trials, 3);
}

TEST_F(Shrinking, APlanThatPassesIsRefused) {
  const Result<Shrunk> shrunk = shrink(session_, nano_plan(), "resume_equals_golden");
  ASSERT_FALSE(shrunk);
  EXPECT_EQ(shrunk.error().code, Code::invalid_input);
  EXPECT_THAT(shrunk.error().message, HasSubstr("does not fail resume_equals_golden"));
}

TEST_F(Shrinking, AMutantsFailureComesDownToTwoFaultsAtMostAndKeepsItsProperty) {
  for (const char* mutant : {"optimizer_step_reset", "protocol_early_marker", "protocol_unreadable_is_absent"}) {
    const Hunt found = caught(mutant);
    const Result<Shrunk> shrunk = shrink(session_, found.plan, found.property);
    ASSERT_TRUE(shrunk) << mutant << ": " << describe(shrunk.error());
    EXPECT_TRUE(shrunk->complete) << mutant;
    EXPECT_LE(shrunk->plan.faults.size(), 2U) << mutant << ": " << size_in_words(shrunk->plan);
    EXPECT_LE(shrunk->plan.job.steps, found.plan.job.steps);
    const Result<bool> fails = fails_in(session_, shrunk->plan, found.property);
    ASSERT_TRUE(fails);
    EXPECT_TRUE(*fails) << mutant;
    Plan right = shrunk->plan;
    right.mutant.clear();
    const Result<Trial> control = session_.trial(right);
    ASSERT_TRUE(control);
    EXPECT_EQ(control->verdict, RunVerdict::pass) << mutant << ": " << control->property << control->evidence;
  }
}

TEST_F(Shrinking, IsTheSameEachTime) {
  const Hunt found = caught("optimizer_step_reset");
  const Result<Shrunk> once = shrink(session_, found.plan, found.property);
  Session other({.golden_directory = "golden"});
  const Result<Shrunk> again = shrink(other, found.plan, found.property);
  ASSERT_TRUE(once && again);
  EXPECT_EQ(to_json(once->plan), to_json(again->plan));
  EXPECT_EQ(once->trials, again->trials);
}

TEST_F(Shrinking, AJobThatNeverEndsShrinksAsSuch) {
  Plan plan = nano_plan();  // killed once more than it may start again, and another fault
  plan.faults = {{.at = {.attempt = std::nullopt, .rank = 1, .step = 5, .phase = Phase::forward}, .times = 0},
                 {.kind = FaultKind::slow_disk, .at = {.phase = Phase::save}, .delay = Duration{1000}}};
  plan.recovery.budget = 1;
  const Result<Failure> failure = failure_of(session_, plan);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->property, failed_liveness);
  const Result<Shrunk> shrunk = shrink(session_, plan, failed_liveness);
  ASSERT_TRUE(shrunk) << describe(shrunk.error());
  ASSERT_EQ(shrunk->plan.faults.size(), 1U);
  EXPECT_EQ(shrunk->plan.faults[0].kind, FaultKind::kill);
  EXPECT_EQ(expecting(shrunk->plan, failed_liveness).expect.kind, Expectation::Kind::liveness);
}

}  // namespace
}  // namespace firedrill
