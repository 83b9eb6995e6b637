#include "harness/world/recovery_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Plan plan_with(const RecoverySpec& recovery) {
  Plan plan;
  plan.job.lanes.dp = 4;
  plan.job.cluster.ranks_per_node = 2;
  plan.layout = {.dp = 4};
  plan.recovery = recovery;
  return plan;
}

Ending loss_of_node(int node) { return {.attempt = 1, .rank = 2 * node, .loss = true, .nodes_lost = {node}}; }
Ending error() { return {.attempt = 1, .rank = 1}; }

TEST(RecoveryPolicy, RestartKeepsNodesAndChangesTheLayoutAtOnce) {
  const Plan plan = plan_with({.layout = Layout{.dp = 2}});
  RecoveryState state(plan);
  EXPECT_FALSE(state.next(1).other_layout);
  EXPECT_FALSE(state.take(loss_of_node(1)));
  EXPECT_TRUE(state.next(2).other_layout);
  EXPECT_THAT(state.next(2).nodes, IsEmpty());
}

TEST(RecoveryPolicy, ASpareTakesThePlaceOfALostNodeUntilNoneIsLeft) {
  const Plan plan = plan_with({.policy = RecoveryPolicy::spare, .spares = 2});
  RecoveryState state(plan);
  EXPECT_FALSE(state.take(error()));
  EXPECT_EQ(state.nodes_in_words(), "") << "an error loses no node";
  EXPECT_FALSE(state.take(loss_of_node(1)));
  EXPECT_THAT(state.next(2).nodes, ElementsAre(0, 2));
  EXPECT_FALSE(state.take(loss_of_node(2))) << "a spare can be lost, too";
  EXPECT_EQ(state.nodes_in_words(), "nodes 0, 3");
  const auto why = state.take(loss_of_node(0));
  ASSERT_TRUE(why);
  EXPECT_EQ(*why, "node 0 is lost, and none of the 2 spare nodes is left");
}

TEST(RecoveryPolicy, FewerRanksOnlyBehindALossAndOnTheNodesThatAreLeft) {
  const Plan plan = plan_with({.policy = RecoveryPolicy::fewer, .layout = Layout{.dp = 2}});
  RecoveryState state(plan);
  EXPECT_FALSE(state.take(error()));
  EXPECT_FALSE(state.next(2).other_layout);
  EXPECT_FALSE(state.take(loss_of_node(0)));
  EXPECT_TRUE(state.next(3).other_layout);
  EXPECT_THAT(state.next(3).nodes, ElementsAre(1));
  const auto why = state.take(loss_of_node(1));
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("needs 1 nodes, and 0 are left"));
}

TEST(RecoveryPolicy, TheBackOffGrowsToItsMax) {
  using std::chrono::seconds;
  const Plan plan = plan_with({.backoff = {.initial = seconds(1), .factor = 3, .max = seconds(8)}});
  const RecoveryState state(plan);
  EXPECT_EQ(state.next(1).pause, Duration{0});
  EXPECT_EQ(state.next(2).pause, seconds(1));
  EXPECT_EQ(state.next(3).pause, seconds(3));
  EXPECT_EQ(state.next(4).pause, seconds(8));
  EXPECT_EQ(state.next(1000).pause, seconds(8));
}

TEST(RecoveryPolicy, AnEndingIsThatOfTheRankThatEndedBadlyFirst) {
  Tables tables;
  History history(tables);
  history.append({.kind = EventKind::rank_ended, .rank = 3, .attempt = 1, .step = 2, .a = 2});
  const std::size_t from = history.size();
  history.append({.kind = EventKind::rank_ended, .rank = 0, .attempt = 2, .step = 7, .a = 0});
  history.append({.kind = EventKind::rank_ended,
                  .phase = Phase::forward,
                  .rank = 1,
                  .attempt = 2,
                  .step = 7,
                  .a = 1,
                  .name = tables.names.intern("it threw")});
  history.append({.kind = EventKind::rank_ended, .rank = 2, .attempt = 2, .step = 7, .a = 1});
  const Ending ending = ending_of(history, from, 2);
  EXPECT_EQ(ending.rank, 1);
  EXPECT_EQ(ending.phase, Phase::forward);
  EXPECT_EQ(ending.how, "it threw");
  EXPECT_FALSE(ending.loss) << "that was in another attempt";
}

TEST(RecoveryPolicy, APoisonStepIsWhatTheLastAttemptsHaveInCommon) {
  const auto at = [](int attempt, std::int64_t step) {
    return Ending{.attempt = attempt, .rank = 1, .step = step, .phase = Phase::forward, .how = "killed"};
  };
  EXPECT_EQ(poison_in({at(1, 7)}), "");
  EXPECT_EQ(poison_in({at(1, 7), at(2, 8)}), "");
  EXPECT_EQ(poison_in({at(1, 3), at(2, 7), at(3, 7)}), "attempts 2 and 3 all ended at step 7, forward, rank 1: killed");
  EXPECT_EQ(poison_in({at(1, 7), at(2, 7), at(3, 7)}), "attempts 1 to 3 all ended at step 7, forward, rank 1: killed");
}

}  // namespace
}  // namespace firedrill
