#include "harness/check/test_calls.h"

namespace firedrill {
namespace {

using testing::ElementsAre;

TEST_F(CallsTest, ARankThatWaitsForWhatOthersPutOffLeftTheirCallOut) {
  for (const int rank : {0, 1, 3}) {
    record(rank, {.sequence = 3, .call = "reduce_scatter f32 sum gradients.head"});  // on its way
    record(rank, {.waited_for = 2, .call = "all_reduce f32 sum loss"});
  }
  record(2, {.sequence = 3, .waited_for = 3, .call = "reduce_scatter f32 sum gradients.head"});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->sequence, 4);
}

TEST_F(CallsTest, ARankInACallThatMostLeftOutHasOneTooMany) {
  constexpr std::string_view head = "all_reduce f32 sum gradients.head";
  for (const int rank : {0, 2, 3}) {
    record(rank, {.sequence = 2, .waited_for = rank == 0 ? 1 : 0, .call = head});
    record(rank, {.sequence = 3});
  }
  record(1, {.sequence = 2, .call = head});
  record(1, {.sequence = 3});
  record(1, {.waited_for = 0});  // once more
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::mismatch);
  EXPECT_THAT(found->ranks, ElementsAre(1));
  EXPECT_EQ(found->sequence, 4);
}

TEST_F(CallsTest, OfTwoOfWhomOneLeftACallOutNobodyKnowsWhoIsRight) {
  constexpr std::string_view head = "all_reduce f32 sum gradients.head";
  record(0, {.stream = "dp[0-1]", .sequence = 3, .waited_for = 1, .call = head});
  record(1, {.stream = "dp[0-1]", .sequence = 3, .call = head});
  record(1, {.stream = "dp[0-1]", .waited_for = 0});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(0, 1));
  EXPECT_EQ(found->sequence, 4);
}

TEST_F(CallsTest, OfTwoCallsOfAPhaseTheOneThatIsMadeFirstIsNamed) {
  constexpr std::string_view chunks = "all_reduce f32 sum gradients.chunks";
  constexpr std::string_view norm = "all_gather gradient_norm";
  for (const int rank : {0, 1}) record(rank, {.stream = "tp[0-1]", .completed = true, .call = chunks});
  for (const int rank : {0, 1, 2}) record(rank, {.stream = "model[0-3]", .waited_for = 3, .call = norm});
  record(3, {.stream = "tp[2-3]", .waited_for = 2, .call = chunks});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(2, 3));  // of two nobody can tell which is wrong
  EXPECT_EQ(found->stream, "tp[2-3]");
}

TEST_F(CallsTest, WhatTwoDisagreeAboutIsNamedWhereTheOtherGroupsOfTheirKindComeFirst) {
  constexpr std::string_view sixth = "all_reduce f32 sum tp.sum.6";
  constexpr std::string_view seventh = "all_reduce f32 sum tp.sum.7";
  for (const int rank : {0, 1}) {
    record(rank, {.stream = "tp[0-1]", .phase = Phase::backward, .completed = true, .call = sixth});
    record(rank, {.stream = "tp[0-1]", .sequence = 5, .phase = Phase::forward, .completed = true, .call = seventh});
  }
  record(2, {.stream = "tp[2-3]", .phase = Phase::forward, .call = seventh});
  record(3, {.stream = "tp[2-3]", .phase = Phase::backward, .call = sixth});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(2, 3));
  EXPECT_EQ(found->phase, Phase::backward);
}

TEST_F(CallsTest, OfSeveralThatWerePassedByTheEarliestIsNamed) {
  constexpr std::string_view norm = "all_gather gradient_norm";
  record(0, {.stream = "pp.backward[2>0]", .step = 6, .phase = Phase::backward, .waited_for = 2, .call = "recv d"});
  record(1, {.stream = "model[1,3]", .sequence = 1, .waited_for = 3, .call = norm});  // once more
  record(2, {.stream = "dp[2-3]", .step = 6, .waited_for = 3});
  record(3, {.stream = "model[1,3]", .sequence = 0, .completed = true, .call = norm});
  record(3, {.stream = "pp[1>3]", .step = 6, .phase = Phase::forward, .waited_for = 1, .call = "recv a"});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(1, 3));
  EXPECT_EQ(found->stream, "model[1,3]");
  EXPECT_EQ(found->step, 5);
}

TEST_F(CallsTest, WhoPublishesAStepLeftOutTheCallThatAnotherStillWaitsIn) {
  const auto publishes = [this](int rank, int waited_for) {
    record(rank, {.stream = "publish[0-3]", .phase = Phase::save, .waited_for = waited_for, .call = "broadcast open"});
  };
  for (const int rank : {0, 2, 3}) publishes(rank, rank == 2 ? 1 : 2);
  record(1, {.stream = "model[0-1]", .sequence = 3, .waited_for = 0, .call = "all_gather gradient_norm"});
  auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(0, 1));  // or rank 1 has one too many
  EXPECT_EQ(found->stream, "model[0-1]");
  drill_.add(EventKind::calls, {.rank = 1, .step = 4, .a = 1, .name = "model[0-1]"});
  found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(0));
  EXPECT_EQ(found->sequence, 3);
}

TEST_F(CallsTest, WhatIsExchangedInBucketsHasPassedNoMicroBatchBy) {
  drill_.plan.layout.bucket_bytes = 4096;
  record(0, {.stream = "pp.backward[2>0]", .phase = Phase::backward, .waited_for = 2, .call = "recv d"});
  record(2, {.stream = "dp[2-3]", .waited_for = 3});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(3));
}

TEST_F(CallsTest, WhoeverWaitsForOneOfTwoThatWaitForEachOtherHasNotBeenPassedBy) {
  constexpr std::string_view lanes = "all_reduce f32 sum gradients.cp";
  constexpr std::string_view replicas = "all_reduce f32 sum gradients.layers";
  record(1, {.stream = "cp[0-1]", .sequence = 3, .completed = true, .call = lanes});
  record(3, {.stream = "cp[2-3]", .sequence = 3, .completed = true, .call = lanes});
  record(0, {.stream = "cp[0-1]", .waited_for = 1, .call = lanes});
  record(2, {.stream = "cp[2-3]", .waited_for = 3, .call = lanes});
  record(1, {.stream = "dp[1,3]", .waited_for = 3, .call = replicas});
  record(3, {.stream = "dp[1,3]", .waited_for = 1, .call = replicas});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::link);
  EXPECT_THAT(found->ranks, ElementsAre(1, 3));
}

TEST_F(CallsTest, WhatTheOtherTaskOfARankThatEndedByItselfLeftOpenIsAConsequence) {
  constexpr std::string_view publish = "publish[0-3]";
  for (const int rank : {0, 1, 3}) record(rank, {.sequence = 9, .step = 9, .phase = Phase::optimizer, .waited_for = 2});
  record(2, {.sequence = 8, .step = 9, .completed = true});
  for (const int rank : {0, 1, 2})
    record(rank, {.stream = publish, .sequence = 15, .step = 8, .phase = Phase::save, .completed = true});
  record(3, {.stream = publish, .sequence = 16, .step = 8, .phase = Phase::save, .waited_for = 0});
  drill_.add(EventKind::rank_ended, {.rank = 2, .step = 9, .phase = Phase::optimizer, .a = 1, .detail = "mismatch"});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->stream, dp);
  EXPECT_EQ(found->sequence, 9);
}

TEST_F(CallsTest, OfTwoCallsOfAPhaseWhoseOrderNobodyTellsThatOfTheMostIsNamed) {
  constexpr std::string_view norm = "all_gather gradient_norm";
  record(0, {.stream = world, .sequence = 1, .waited_for = 2, .call = "all_gather replica_check"});
  record(2, {.waited_for = 0, .call = norm});
  for (const int rank : {1, 3}) record(rank, {.waited_for = 2, .call = norm});
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(0));
  EXPECT_EQ(found->stream, dp);
}

// Rank 2 gives up ahead of a receive, for which its sender waits for nothing; rank 1 misses what it would have sent on.
TEST_F(CallsTest, WhoGivesUpAheadOfAReceiveMayBeMissedInAnotherGroupIfNobodyKnowsWhatWasDue) {
  const Phase backward = Phase::backward;
  record(1, {.stream = "pp.backward[2>1]", .sequence = 5, .phase = backward, .waited_for = 2, .call = "recv gradient"});
  record(2, {.stream = "pp.backward[3>2]", .phase = backward, .completed = true, .call = "recv f32 gradient"});
  record(3,
         {.stream = "pp.backward[3>2]", .sequence = 5, .phase = backward, .completed = true, .call = "send gradient"});
  gives_up(2, 5, backward);
  const auto known = drill_.events.size();
  fire(FaultKind::early_abort, 2, 5, backward, "pp.backward[3>2] call 5 recv gradient");
  end();
  expect_pass(drill_, judge_failures_are_attributed);
  // Had it known, it would have told its call.
  const Event due = drill_.add(
      EventKind::divergence,
      {.rank = 2, .step = 5, .phase = backward, .a = 5, .b = 0, .name = "pp.backward[2>1]", .detail = "send gradient"});
  drill_.events.pop_back();
  drill_.events.insert(drill_.events.begin() + static_cast<std::ptrdiff_t>(known), due);
  expect_fail(drill_, judge_failures_are_attributed, "call 5 of pp.backward[2>1]");
}

}  // namespace
}  // namespace firedrill
