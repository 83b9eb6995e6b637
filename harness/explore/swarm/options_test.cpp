#include "harness/explore/swarm/options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/explore/swarm/swarm.h"
#include "harness/explore/swarm/test_base.h"

namespace firedrill {
namespace {

// Saves at every second step, in an attempt that ends at `ended_at` by something that is no death.
Plan left_with(std::int64_t ended_at, int keep) {
  Plan plan = nano_base();
  plan.job.checkpoint.every = 2;
  plan.job.checkpoint.keep_validated = keep;
  plan.faults = {FaultSpec{.kind = FaultKind::bit_flip, .at = {.step = ended_at, .phase = Phase::optimizer}}};
  return plan;
}

FaultSpec flip_at_rest(int attempt) {
  return {.kind = FaultKind::bit_flip_at_rest, .at = {.attempt = attempt, .step = 0, .phase = Phase::restore}};
}

bool hits(Plan plan, const std::vector<FaultSpec>& flips) {
  plan.faults.insert(plan.faults.end(), flips.begin(), flips.end());
  return hits_the_only_checkpoint(plan, plan.faults.back());
}

TEST(HitsTheOnlyCheckpoint, OneFlipBehindARestartIsSurvivedIfTheFirstAttemptLeftTwo) {
  EXPECT_FALSE(hits(left_with(5, 2), {flip_at_rest(2)}));
  EXPECT_TRUE(hits(left_with(3, 2), {flip_at_rest(2)})) << "only step 2 was saved";
  EXPECT_TRUE(hits(left_with(5, 1), {flip_at_rest(2)})) << "only one is kept";
}

// A flip in each of two attempts was taken for survivable whenever two checkpoints were there.
TEST(HitsTheOnlyCheckpoint, FlipsOfAllAttemptsBehindTheFirstCountTogether) {
  EXPECT_TRUE(hits(left_with(5, 3), {flip_at_rest(2), flip_at_rest(3)})) << "steps 2 and 4 were saved";
  EXPECT_TRUE(hits(left_with(9, 2), {flip_at_rest(2), flip_at_rest(3)})) << "two are kept";
  EXPECT_FALSE(hits(left_with(7, 3), {flip_at_rest(2), flip_at_rest(3)}));
}

TEST(HitsTheOnlyCheckpoint, AFlipThatFiresTwiceCountsTwice) {
  FaultSpec twice = flip_at_rest(2);
  twice.times = 2;
  EXPECT_TRUE(hits(left_with(5, 3), {twice}));
  EXPECT_FALSE(hits(left_with(7, 3), {twice}));
}

// The save of step 2 failed for good and the job went on, so the torn one of step 4 was the only one there was.
TEST(HitsTheOnlyCheckpoint, ASaveThatFailedAndWasSurvivedStandsInForNoOther) {
  Plan plan = left_with(5, 2);
  const FaultSpec torn{.kind = FaultKind::torn_write, .at = {.step = 4, .phase = Phase::commit}};
  FaultSpec full{.kind = FaultKind::no_space, .at = {.step = 2, .phase = Phase::commit}, .times = 3};
  EXPECT_FALSE(hits(plan, {full, torn})) << "which ends the attempt";
  plan.job.checkpoint.on_error = OnError::continue_training;
  plan.job.checkpoint.failures_max = 2;
  EXPECT_TRUE(hits(plan, {full, torn}));
  full.times = 2;
  EXPECT_FALSE(hits(plan, {full, torn})) << "the third try is done";
  full.times = 0;
  EXPECT_TRUE(hits(plan, {full, torn})) << "without end";
  full.at.step = 6;
  EXPECT_FALSE(hits(plan, {full, torn})) << "later";
}

// Reads that fail in the search for a checkpoint, in an attempt of one rank or of more.
bool is_survived(int times, int ranks, int faults = 1) {
  Plan plan = nano_base();
  plan.layout.dp = ranks;
  plan.recovery.budget = 3;
  const FaultSpec error{
      .kind = FaultKind::io_error, .at = {.attempt = 1, .rank = 0, .phase = Phase::find}, .times = times};
  plan.faults.assign(static_cast<std::size_t>(faults), error);
  const std::vector<std::string> reasons = beyond_budget(plan);
  return std::ranges::find(reasons, "a checkpoint may be hidden from the only rank") == reasons.end();
}

TEST(BeyondBudget, ASecondReadThatFailsConfirmsTheFirstIfThereIsNoOtherRank) {
  EXPECT_TRUE(is_survived(1, 1));
  EXPECT_FALSE(is_survived(2, 1));
  EXPECT_FALSE(is_survived(0, 1)) << "without end";
  EXPECT_FALSE(is_survived(1, 1, 2));
  EXPECT_TRUE(is_survived(3, 4)) << "another rank looks";
}

bool tells_apart(FaultKind kind, int ranks, const std::vector<int>& hit, int last_nth) {
  Plan plan = nano_base();
  plan.layout.dp = ranks;
  plan.layout.guard = Guard::check;
  plan.recovery.budget = 3;
  for (const int rank : hit) {
    plan.faults.push_back({.kind = kind, .at = {.attempt = 1, .rank = rank, .step = 3, .phase = Phase::exchange}});
  }
  plan.faults.back().at.nth = last_nth;
  const std::vector<std::string> reasons = beyond_budget(plan);
  return std::ranges::find(reasons, "all members of a group may agree on a wrong call") == reasons.end();
}

TEST(BeyondBudget, AWrongCallOfAllMembersIsOneThatNobodyNotices) {
  EXPECT_FALSE(tells_apart(FaultKind::skip_call, 2, {0, 1}, 1));
  EXPECT_TRUE(tells_apart(FaultKind::skip_call, 2, {0, 1}, 2)) << "another call";
  EXPECT_TRUE(tells_apart(FaultKind::skip_call, 4, {0, 1}, 1)) << "the others know";
  EXPECT_TRUE(tells_apart(FaultKind::wrong_count, 2, {0, 1}, 1)) << "what came is no sum of what was given";
  EXPECT_TRUE(tells_apart(FaultKind::kill, 2, {0, 1}, 1));
}

}  // namespace
}  // namespace firedrill
