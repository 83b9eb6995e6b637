#include "faults/trigger.h"

#include <gtest/gtest.h>

#include <vector>

namespace firedrill {
namespace {

constexpr CallSite compute{.op = SeamOp::compute};
CallSite file(FileOp op, std::string_view path, std::string_view second = {}) {
  return {.op = SeamOp::file, .file_op = op, .path = path, .second_path = second};
}
Position at(std::int64_t step, Phase phase) { return {.attempt = 1, .rank = 2, .step = step, .phase = phase}; }

// Which of `calls` calls at one position are hit, from 1.
std::vector<int> hits(Trigger& trigger, const Position& position, const CallSite& call, int calls) {
  std::vector<int> found;
  for (int i = 1; i <= calls; ++i) {
    if (!trigger.hit(position, call)) continue;
    trigger.count_firing();
    found.push_back(i);
  }
  return found;
}

TEST(Trigger, FiresOnceAtTheNthMatchingCall) {
  const FaultSpec spec{.at = {.rank = 2, .step = 3, .phase = Phase::backward, .nth = 2}};
  Trigger trigger(spec, 0);
  EXPECT_EQ(hits(trigger, at(2, Phase::backward), compute, 5), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(3, Phase::forward), compute, 5), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(3, Phase::backward), compute, 5), std::vector<int>{2});
  EXPECT_TRUE(trigger.used_up());
}

TEST(Trigger, CountsAnewInEveryStepAndPhase) {
  const FaultSpec spec{.at = {.rank = 2, .nth = 3}};
  Trigger trigger(spec, 0);
  EXPECT_EQ(hits(trigger, at(1, Phase::forward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(1, Phase::backward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(2, Phase::forward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(2, Phase::backward), compute, 3), std::vector<int>{3});
}

TEST(Trigger, GoesOnCountingInAPhaseThatIsEnteredAgain) {
  const FaultSpec spec{.at = {.rank = 2, .phase = Phase::forward, .nth = 3}};
  Trigger trigger(spec, 0);
  EXPECT_EQ(hits(trigger, at(1, Phase::forward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(1, Phase::backward), compute, 2), std::vector<int>{});
  EXPECT_EQ(hits(trigger, at(1, Phase::forward), compute, 2), std::vector<int>{1});
}

TEST(Trigger, SeveralTimesGoOnFromTheNthCall) {
  const FaultSpec spec{.at = {.rank = 2, .nth = 2}, .times = 3};
  Trigger trigger(spec, 0);
  EXPECT_EQ(hits(trigger, at(1, Phase::save), compute, 3), (std::vector<int>{2, 3}));
  EXPECT_EQ(hits(trigger, at(2, Phase::save), compute, 5), std::vector<int>{2});
}

TEST(Trigger, WithoutEndNeverIsUsedUp) {
  const FaultSpec spec{.at = {.rank = 2}, .times = 0};
  Trigger trigger(spec, 1000);
  EXPECT_TRUE(trigger.possible(1, 2));
  EXPECT_EQ(hits(trigger, at(1, Phase::save), compute, 4).size(), 4U);
}

TEST(Trigger, FiringsOfEarlierAttemptsCount) {
  const FaultSpec spec{.at = {.attempt = std::nullopt, .rank = 2}, .times = 2};
  Trigger once_more(spec, 1);
  EXPECT_TRUE(once_more.possible(5, 2));
  EXPECT_EQ(hits(once_more, at(1, Phase::save), compute, 3), std::vector<int>{1});
  EXPECT_FALSE(Trigger(spec, 2).possible(5, 2));
}

TEST(Trigger, IsPossibleOnlyOnItsRankAndAttempt) {
  const FaultSpec spec{.at = {.attempt = 2, .rank = 1}};
  EXPECT_TRUE(Trigger(spec, 0).possible(2, 1));
  EXPECT_FALSE(Trigger(spec, 0).possible(1, 1));
  EXPECT_FALSE(Trigger(spec, 0).possible(2, 0));
}

TEST(Trigger, MatchesOperationAndPath) {
  const FaultSpec write{.at = {.rank = 2, .op = SeamOp::file, .file_op = FileOp::write, .path = "shards/*/model-?"}};
  const auto first = [&write](const CallSite& call) { return Trigger(write, 0).hit(at(2, Phase::save), call); };
  EXPECT_TRUE(first(file(FileOp::write, "shards/2-1-1/model-2")));
  EXPECT_FALSE(first(file(FileOp::read, "shards/2-1-1/model-2")));
  EXPECT_FALSE(first(file(FileOp::write, "shards/2-1-1/extra-2")));
  EXPECT_FALSE(first(compute));
}

TEST(Trigger, RenameMatchesByEitherName) {
  const FaultSpec spec{.at = {.rank = 2, .path = "manifests/*"}};
  const auto first = [&spec](const CallSite& call) { return Trigger(spec, 0).hit(at(2, Phase::commit), call); };
  EXPECT_TRUE(first(file(FileOp::rename, "tmp/2-1-1", "manifests/2-1-1")));
  EXPECT_TRUE(first(file(FileOp::rename, "manifests/2-1-1", "tmp/2-1-1")));
  EXPECT_FALSE(first(file(FileOp::rename, "tmp/2-1-1", "shards/2-1-1")));
}

TEST(Trigger, CountsOnlyCallsThatTheKindCanBeAbout) {
  const FaultSpec spec{.kind = FaultKind::no_space, .at = {.rank = 2, .nth = 2}};
  Trigger trigger(spec, 0);
  const Position position = at(2, Phase::save);
  EXPECT_FALSE(trigger.hit(position, compute));
  EXPECT_FALSE(trigger.hit(position, file(FileOp::create, "a")));  // the first
  EXPECT_FALSE(trigger.hit(position, file(FileOp::sync, "a")));
  EXPECT_TRUE(trigger.hit(position, file(FileOp::write, "a")));  // the second
}

}  // namespace
}  // namespace firedrill
