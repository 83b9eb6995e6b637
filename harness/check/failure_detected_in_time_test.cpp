#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/check/all.h"
#include "harness/check/drill_builder.h"
#include "harness/check/property_expect.h"

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds begun{100};

// One attempt of two ranks, in which a fault fires at `begun` on rank 1.
class Drill {
 public:
  explicit Drill(const FaultSpec& fault) {
    builder.plan.faults = {fault};
    builder.plan.job.cluster.deadline = milliseconds(2'000);
    builder.plan.job.cluster.heartbeat = milliseconds(250);
    builder.plan.job.cluster.grace = milliseconds(1'000);
    builder.start_fresh();
    at(begun, EventKind::fault_fired, {.rank = 1, .step = 3, .phase = Phase::backward});
  }
  Event& at(milliseconds time, EventKind kind, const Facts& facts) {
    Event& event = builder.add(kind, facts);
    event.time = time;
    return event;
  }
  void suspected(milliseconds after, int rank = 1) {
    at(begun + after, EventKind::suspected, {.a = rank, .b = static_cast<std::int64_t>(Suspicion::stopped)});
  }
  void died(milliseconds after) { at(begun + after, EventKind::rank_ended, {.rank = 1, .a = 2}); }
  void over(milliseconds after) {
    at(begun + after, EventKind::rank_ended, {.rank = 0, .a = 1, .detail = "aborted"});
    at(begun + after, EventKind::attempt_ended, {.a = 1, .b = 1});
  }
  Verdict judge() { return builder.judge_with(judge_failure_detected_in_time); }

  DrillBuilder builder;
};

FaultSpec of(FaultKind kind) { return {.kind = kind, .at = {.rank = 1}}; }

TEST(FailureDetectedInTime, AGoodRunPasses) {
  DrillBuilder builder;
  builder.whole_run();
  EXPECT_EQ(builder.judge_with(judge_failure_detected_in_time).outcome, Outcome::pass);
}

TEST(FailureDetectedInTime, ADeathIsNoticedAtOnce) {
  Drill drill(of(FaultKind::kill));
  drill.died(milliseconds(0));
  drill.over(milliseconds(2));
  EXPECT_EQ(drill.judge().outcome, Outcome::pass);
  Drill late(of(FaultKind::kill));
  late.died(milliseconds(900));
  late.over(milliseconds(901));
  EXPECT_THAT(late.judge().evidence, HasSubstr("noticed after 900ms"));
}

TEST(FailureDetectedInTime, AStoppedRankIsNoticedWithinADeadlineAndTwoHeartbeats) {
  Drill drill(of(FaultKind::hang));
  drill.suspected(milliseconds(2'400));
  drill.died(milliseconds(2'400));
  drill.over(milliseconds(2'401));
  EXPECT_EQ(drill.judge().outcome, Outcome::pass);
  Drill late(of(FaultKind::hang));
  late.suspected(milliseconds(2'501));
  late.over(milliseconds(2'502));
  EXPECT_EQ(late.judge().outcome, Outcome::fail);
}

// A publish that is stuck beside training was asked to be noticed before it holds anybody up.
TEST(FailureDetectedInTime, ARankThatStillFinishesStepsIsHeldUpFromTheLastOfThem) {
  for (const milliseconds noticed : {milliseconds(2'700), milliseconds(2'801)}) {
    Drill drill(of(FaultKind::stall));
    drill.at(begun + milliseconds(300), EventKind::step_done, {.rank = 1, .step = 4});
    drill.suspected(noticed);
    drill.over(noticed + milliseconds(1));
    EXPECT_EQ(drill.judge().outcome, noticed < milliseconds(2'800) ? Outcome::pass : Outcome::fail);
  }
  Drill others(of(FaultKind::stall));
  others.at(begun + milliseconds(300), EventKind::step_done, {.rank = 0, .step = 4});
  others.suspected(milliseconds(2'700));
  others.over(milliseconds(2'701));
  EXPECT_EQ(others.judge().outcome, Outcome::fail);
}

// The attempt ended by the other rank's fault, by a call that others disagreed with or by damage to a file, and the
// silent one was killed when the time for that was over.
TEST(FailureDetectedInTime, WhoFallsSilentAsAnotherRankGoesNeedNotBeNoticedByItself) {
  for (const std::string_view error : {"aborted", "timeout", "mismatch", "corrupted", "io_error", "no_space"}) {
    for (const bool by_a_fault : {true, false}) {
      Drill drill(of(FaultKind::hang));
      drill.builder.plan.faults.push_back({.kind = FaultKind::early_abort, .at = {.rank = 0}});
      if (by_a_fault) drill.at(begun, EventKind::fault_fired, {.rank = 0, .a = 1});
      drill.at(begun + milliseconds(1), EventKind::rank_ended, {.rank = 0, .a = 1, .detail = error});
      drill.died(milliseconds(2'501));
      drill.at(begun + milliseconds(2'501), EventKind::attempt_ended, {.a = 1, .b = 1});
      const bool well = (error != "aborted" && error != "timeout") || (by_a_fault && error == "aborted");
      EXPECT_EQ(drill.judge().outcome, well ? Outcome::pass : Outcome::fail) << error << by_a_fault;
    }
  }
}

TEST(FailureDetectedInTime, WhatNobodyNoticesFails) {
  Drill drill(of(FaultKind::stall));
  EXPECT_THAT(drill.judge().evidence, HasSubstr("nobody ever noticed"));
}

TEST(FailureDetectedInTime, SurvivorsThatAreLeftWaitingFail) {
  Drill drill(of(FaultKind::kill));
  drill.died(milliseconds(0));
  drill.over(milliseconds(20'000));
  EXPECT_THAT(drill.judge().evidence, HasSubstr("survivors were left waiting"));
}

TEST(FailureDetectedInTime, AnExitWithCodeZeroMustNotCountAsFinished) {
  Drill drill(of(FaultKind::exit));
  drill.at(begun, EventKind::rank_ended, {.rank = 1, .a = 0});
  drill.over(milliseconds(2));
  EXPECT_THAT(drill.judge().evidence, HasSubstr("counts as one that has finished"));
}

TEST(FailureDetectedInTime, APreemptedRankHasItsGraceTimeToLeave) {
  Drill drill(of(FaultKind::preempt));
  drill.at(begun + milliseconds(10), EventKind::preempt_agreed, {.rank = 0, .a = 4});
  for (const int rank : {0, 1}) drill.at(begun + milliseconds(20), EventKind::rank_ended, {.rank = rank, .a = 4});
  drill.at(begun + milliseconds(20), EventKind::attempt_ended, {});
  EXPECT_EQ(drill.judge().outcome, Outcome::pass);
  Drill stays(of(FaultKind::preempt));
  stays.over(milliseconds(9'000));
  EXPECT_EQ(stays.judge().outcome, Outcome::fail);
}

TEST(FailureDetectedInTime, ASuspicionWithoutAFaultThatExplainsItIsAFalseAlarm) {
  FaultSpec slow = of(FaultKind::slow);
  slow.delay = milliseconds(100);
  Drill drill(slow);
  drill.suspected(milliseconds(500), 0);
  drill.over(milliseconds(501));
  EXPECT_THAT(drill.judge().evidence, HasSubstr("false alarm in attempt 1: rank 0 is called stopped"));
  slow.delay = milliseconds(5'000);
  Drill beyond(slow);
  beyond.suspected(milliseconds(2'500));
  beyond.over(milliseconds(2'501));
  EXPECT_EQ(beyond.judge().outcome, Outcome::pass) << "that slowness has no excuse";
}

TEST(FailureDetectedInTime, AFaultOfAnEarlierAttemptExplainsNothing) {
  Drill drill(of(FaultKind::kill));
  drill.died(milliseconds(0));
  drill.over(milliseconds(1));
  drill.builder.start();
  drill.suspected(milliseconds(500), -1);
  EXPECT_THAT(drill.judge().evidence, HasSubstr("no rank is called"));
}

TEST(FailureDetectedInTime, AWaitInVainWithoutAFaultFails) {
  DrillBuilder builder;
  builder.start_fresh();
  builder.add(EventKind::rank_ended, {.rank = 0, .a = 1, .name = "no message", .detail = "timeout"});
  EXPECT_THAT(builder.judge_with(judge_failure_detected_in_time).evidence, HasSubstr("waited in vain"));
}

}  // namespace
}  // namespace firedrill
