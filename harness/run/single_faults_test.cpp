// Single faults and undisturbed runs, as single_faults_bench makes a thousand of each.
#include <gtest/gtest.h>

#include <set>

#include "harness/run/single_faults.h"
#include "harness/run/test_runs.h"

namespace firedrill {
namespace {

class SingleFault : public testing::Test {
 protected:
  SingleFaults must_make() {
    Result<SingleFaults> single = SingleFaults::make(session_);
    FD_CHECK(single.ok(), "{}", describe(single.error()));
    return *std::move(single);
  }
  static Plan must(Result<Plan> plan) {
    FD_CHECK(plan.ok(), "{}", describe(plan.error()));
    return *std::move(plan);
  }
  SingleResult must_run(SingleFaults& single, const Plan& plan) {
    const Result<SingleResult> result = single.run(plan);
    FD_CHECK(result.ok(), "{}", describe(result.error()));
    return *result;
  }

  Session session_{{.probes = false}};
};

TEST_F(SingleFault, OfAnyKindIsHarmlessOrItsRankAndOperationAreNamed) {
  SingleFaults single = must_make();
  std::set<FaultKind> kinds;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const Plan plan = must(single.draw(seed));
    kinds.insert(plan.faults.front().kind);
    const SingleResult result = must_run(single, plan);
    EXPECT_FALSE(is_finding(result.outcome)) << "seed " << seed << ", " << to_string(plan.layout) << ", "
                                             << describe(plan.faults.front()) << ": " << result.why;
  }
  EXPECT_GE(kinds.size(), single_fault_kinds().size() * 3 / 4);
}

TEST_F(SingleFault, NobodyIsSuspectedWhereMessagesAreLateAndARankIsSlowWithinBounds) {
  SingleFaults single = must_make();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Plan plan = must(single.draw_undisturbed(seed));
    const SingleResult result = must_run(single, plan);
    EXPECT_EQ(result.outcome, SingleOutcome::harmless) << "seed " << seed << ": " << result.why;
  }
}

TEST_F(SingleFault, IsDrawnAlikeForTheSameSeed) {
  SingleFaults one = must_make();
  SingleFaults other = must_make();
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(to_json(must(one.draw(seed))), to_json(must(other.draw(seed)))) << "seed " << seed;
}

// A judgement that finds nothing would let everything pass.
TEST_F(SingleFault, IsAFindingWhereWhatCoversItIsOff) {
  SingleFaults single = must_make();
  Plan plan = plan_of("scenarios/collective/skip_call.yaml");
  plan.layout.guard = Guard::record;  // compares nothing before it is too late
  EXPECT_TRUE(is_finding(must_run(single, plan).outcome));
  plan = plan_of("scenarios/rank/nan_rerun.yaml");
  plan.faults.resize(1);
  plan.layout.rerun = false;
  EXPECT_EQ(must_run(single, plan).outcome, SingleOutcome::silently_wrong);
}

TEST_F(SingleFault, IsAFalseAlarmWhereItHadNoReasonToEndAnAttempt) {
  SingleFaults single = must_make();
  Plan plan = plan_of("scenarios/collective/delay_message.yaml");
  EXPECT_EQ(must_run(single, plan).outcome, SingleOutcome::harmless);
  plan = plan_of("scenarios/collective/drop_message.yaml");
  const Trial trial = firedrill::must_run(session_, plan);
  EXPECT_EQ(judge_single_fault(trial, session_.history(), plan).outcome, SingleOutcome::attributed);
  plan.faults.front().kind = FaultKind::duplicate_message;  // as if that had ended it
  EXPECT_TRUE(is_finding(judge_single_fault(trial, session_.history(), plan).outcome));
}

}  // namespace
}  // namespace firedrill
