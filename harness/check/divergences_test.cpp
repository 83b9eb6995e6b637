#include "harness/check/divergences.h"

#include <array>

#include "harness/check/test_calls.h"

namespace firedrill {
namespace {

using testing::ElementsAre;

// Ranks tell where their last step went another way.
class DivergenceTest : public CallsTest {
 protected:
  static constexpr std::string_view cp = "cp[0-1]";

  using Again = Divergence::Again;

  void due(int rank, std::string_view call, std::string_view stream = dp, std::int64_t sequence = 4,
           Phase phase = Phase::exchange) {
    tell(rank, 1, {.stream = stream, .sequence = sequence, .phase = phase, .call = call});
  }
  void came(int rank, std::string_view call, Again again = Again::no, std::string_view stream = dp,
            std::int64_t sequence = 4, Phase phase = Phase::exchange) {
    tell(rank, 2 + static_cast<std::int64_t>(again),
         {.stream = stream, .sequence = sequence, .phase = phase, .call = call});
  }
  void tell(int rank, std::int64_t standing, const Spoken& spoken) {
    drill_.add(EventKind::divergence, {.rank = rank,
                                       .step = spoken.step,
                                       .phase = spoken.phase,
                                       .a = spoken.sequence,
                                       .b = standing,
                                       .name = spoken.stream,
                                       .detail = spoken.call});
  }
};

TEST_F(DivergenceTest, WhoLeftACallOutIsNamedInItThoughOthersShowItElsewhere) {
  record(0, {.stream = cp, .sequence = 7, .phase = Phase::forward, .waited_for = 1, .call = "all_gather keys"});
  record(1, {.stream = cp, .sequence = 7, .phase = Phase::forward, .waited_for = 0, .call = "all_gather values"});
  for (const int rank : {2, 3}) record(rank, {.waited_for = 1, .call = "all_reduce f32 sum gradients.bucket0"});
  due(1, "all_reduce gradients.bucket0");
  came(1, "all_reduce gradients.bucket1");
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(1));
  EXPECT_EQ(found->stream, dp);
  EXPECT_EQ(found->sequence, 4);
  EXPECT_EQ(found->phase, Phase::exchange);
  EXPECT_EQ(found->call, "all_reduce gradients.bucket0");
  EXPECT_EQ(found->what, "all_reduce gradients.bucket1 came in its place");
}

TEST_F(DivergenceTest, ACallThatCameTwiceIsNamedWhereItCameAgain) {
  for (const int rank : {0, 1, 2, 3}) record(rank, {});
  due(2, "all_reduce gradients.bucket1");
  came(2, "all_reduce gradients.bucket0", Again::yes, dp, 5);
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->sequence, 5);
  EXPECT_EQ(found->what, "it was issued once more");
}

TEST_F(DivergenceTest, WhatWasLeftOutOrMadeTwiceIsToldByTheCallInWhichTheRankWaits) {
  const auto named_if_it_waits_in = [&](std::string_view stream) {
    const auto events = drill_.events;
    record(1, {.stream = stream, .sequence = 9, .waited_for = 0, .call = "all_reduce gradients"});
    record(2, {.sequence = 4, .waited_for = 1, .call = "all_reduce gradients"});
    due(1, "all_reduce gradients", dp, 4);
    came(1, "all_reduce gradients.cp", Again::perhaps, cp, 7);
    const auto found = blame();
    drill_.events = events;
    return found ? found->stream : "";
  };
  EXPECT_EQ(named_if_it_waits_in(cp), cp);
  EXPECT_EQ(named_if_it_waits_in(dp), dp);
}

TEST_F(DivergenceTest, AWayOnWhichNobodyIsMissedIsAStepOfAnotherSort) {
  for (const int rank : {0, 1, 2}) record(rank, {.waited_for = 3});
  due(0, "all_reduce norm");
  came(0, "all_gather replica_check");
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(3));
}

TEST_F(DivergenceTest, OfTwoTheEarlierIsNamed) {
  record(0, {.call = "all_reduce gradients.bucket2"});
  for (const int rank : {2, 3}) record(rank, {.call = "all_reduce gradients.bucket1"});
  record(1,
         {.stream = "pp[1>3]", .sequence = 2, .phase = Phase::forward, .completed = true, .call = "send activation"});
  due(0, "all_reduce gradients.bucket1");
  came(0, "all_reduce gradients.bucket2");
  due(3, "recv activation", "pp[1>3]", 2, Phase::forward);
  came(3, "recv activation", Again::no, "pp[1>3]", 3, Phase::forward);
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(3));
  EXPECT_EQ(found->stream, "pp[1>3]");
}

TEST_F(DivergenceTest, WhoGaveUpIsMissingFromTheCallThatWasDue) {
  for (const int rank : {0, 1}) record(rank, {.stream = cp, .sequence = 7, .waited_for = 2, .call = "all_gather keys"});
  gives_up(2, 5, Phase::exchange);
  tell(2, 0, {.call = "all_reduce gradients"});
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->stream, dp);
  EXPECT_EQ(found->sequence, 4);
}

// A stage of two ranks (2 and 3) behind another: rank 2 gives up in its first step, and rank 3 waits for it in the call
// that was due, while rank 0 waits for what would have come behind that.
TEST_F(DivergenceTest, WhoGaveUpInItsFirstStepIsMissingWhereTheRankOfTheSameWayWentOn) {
  const auto both = [&](const Spoken& spoken) {
    for (const int rank : {2, 3}) record(rank, spoken);
  };
  for (const std::int64_t sequence : {1, 2}) {
    both({.stream = "tp[2-3]", .sequence = sequence, .completed = true, .call = "all_reduce tp.sum.0"});
  }
  record(3, {.stream = "tp[2-3]", .sequence = 3, .waited_for = 2, .call = "all_reduce tp.sum.1"});
  record(0, {.stream = "pp[2>0]", .sequence = 0, .waited_for = 2, .call = "recv gradient"});
  gives_up(2, 5, Phase::exchange);
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->stream, "tp[2-3]");
  EXPECT_EQ(found->sequence, 3);
}

// Nobody has made a step before: of four ranks with the same work one parts from the way of the three others.
TEST_F(DivergenceTest, WhoPartsFromTheWayOfMostInTheFirstStepIsNamed) {
  constexpr std::array<std::string_view, 2> groups = {"cp[0-1]", "cp[2-3]"};
  const auto issue = [&](int rank, std::int64_t sequence, std::string_view call, bool completed = true) {
    record(rank, {.stream = groups[static_cast<std::size_t>(rank / 2)],
                  .sequence = sequence,
                  .completed = completed,
                  .call = call});
  };
  const std::vector<std::string_view> way = {"all_gather keys.0", "all_gather keys.1", "all_gather keys.2",
                                             "all_reduce gradients.1"};
  for (const int rank : {0, 1, 2, 3}) {
    for (std::size_t i = 0; i < way.size(); ++i) issue(rank, static_cast<std::int64_t>(i), way[i]);
    if (rank == 3) issue(3, 4, way.back(), false);
    if (rank != 3) issue(rank, 4, "all_gather keys.3", false);
  }
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(3));
  EXPECT_EQ(found->stream, "cp[2-3]");
  EXPECT_EQ(found->sequence, 4);
  EXPECT_EQ(found->call, "all_gather keys.3");
  EXPECT_EQ(found->what, "all_reduce gradients.1 came in its place");
}

// Two calls of one name are told apart by their sizes: the one behind what was due, and the one ahead of it.
TEST_F(DivergenceTest, InTheFirstStepACallAsLargeAsTheOneAheadOfItIsThatOneOnceMore) {
  const std::string_view sum = "all_reduce f32 sum gradients.cp";
  for (const int rank : {0, 1, 2, 3}) {
    const std::string_view group = rank < 2 ? cp : "cp[2-3]";
    record(rank, {.sequence = 0, .call = "all_reduce f32 sum gradients.head"});  // put off
    for (const std::int64_t i : {1, 2})
      record(rank, {.stream = group, .sequence = i, .completed = true, .call = "keys"});
    record(rank, {.stream = group, .sequence = 3, .completed = true, .call = sum, .count = 2304});
    if (rank != 1) record(rank, {.sequence = 1, .call = "all_reduce f32 sum gradients.attention"});
    record(rank, {.stream = group, .call = sum, .count = rank == 1 ? 2304 : 4864});
  }
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(1));
  EXPECT_EQ(found->stream, cp);
  EXPECT_EQ(found->sequence, 4);
  EXPECT_EQ(found->what, "it was issued once more");
}

TEST_F(DivergenceTest, OfTwoThatPartInTheFirstStepNobodyKnowsWhoIsRight) {
  record(0, {.stream = cp, .call = "all_reduce gradients.1"});
  record(1, {.stream = cp, .call = "all_reduce gradients.2"});
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(0, 1));
}

TEST_F(DivergenceTest, WhatOthersDidAlikeIsAStepOfAnotherKind) {
  // A step that compares replicas came where the others still know none; rank 3 hangs in it.
  for (const int rank : {0, 1}) record(rank, {.waited_for = 3, .call = "all_reduce norm"});
  record(2, {.stream = "cp[2-3]", .sequence = 7, .waited_for = 3, .call = "all_gather flags"});
  for (const int rank : {0, 1, 2}) {
    due(rank, "all_reduce norm");
    came(rank, "all_gather flags", Again::no, rank < 2 ? "cp[0-1]" : "cp[2-3]", 7);
  }
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(3));
}

TEST_F(DivergenceTest, WhatOthersMadeTwiceAlikeIsAStepOfAnotherKind) {
  for (const int rank : {0, 1, 2}) {
    record(rank, {.sequence = 4, .completed = true, .call = "all_reduce loss"});
    record(rank, {.sequence = 5, .waited_for = 3, .call = "all_reduce loss"});
    due(rank, "all_reduce norm", dp, 5);
  }
  came(0, "all_reduce loss", Again::yes, dp, 5);  // the others were cut short
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(3));
}

// Parameters are gathered for the end of the forward pass, and again for the beginning of the backward one.
TEST_F(DivergenceTest, ACallOfAnotherPhaseIsNotTheOneThatCameTwice) {
  const auto gather = [&](int rank, std::int64_t sequence, Phase phase, std::string_view call) {
    record(rank, {.sequence = sequence, .phase = phase, .completed = true, .call = call});
  };
  for (const int rank : {0, 1, 2, 3}) {
    gather(rank, 4, Phase::forward, "all_gather head");
    gather(rank, 5, rank == 0 ? Phase::forward : Phase::backward, "all_gather head");
    record(rank, {.sequence = 6, .phase = Phase::backward, .call = rank == 0 ? "all_gather head" : "all_gather mlp"});
  }
  due(0, "all_gather head", dp, 5, Phase::backward);
  came(0, "all_gather head", Again::yes, dp, 5, Phase::forward);
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(0));
  EXPECT_EQ(found->sequence, 5);
  EXPECT_EQ(found->phase, Phase::forward);
}

TEST_F(DivergenceTest, WhatHasLeftTheRecordsOfARankWasNotLeftOut) {
  record(0, {.sequence = 90, .waited_for = 3});
  record(1, {.sequence = 4, .completed = true, .call = "all_reduce norm"});
  record(1, {.sequence = 90, .waited_for = 3});
  record(2, {.sequence = 90, .waited_for = 3});
  due(0, "all_reduce norm");
  came(0, "all_reduce gradients");
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(3));
}

TEST_F(DivergenceTest, ACallOfALaterStepIsNotTheOneThatWasDue) {
  record(0, {.stream = world, .sequence = 12, .step = 6, .waited_for = 3, .call = "all_gather replica_check"});
  for (const int rank : {1, 2}) record(rank, {.waited_for = 3});
  due(1, "all_gather replica_check", world, 12);
  came(1, "all_reduce gradients");
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(3));
}

TEST_F(DivergenceTest, WhoComesAlongInTheFirstStepIsNotOutvoted) {
  for (const int rank : {0, 1, 2, 3}) {
    for (std::int64_t i = 0; i < 4; ++i)
      record(rank, {.stream = rank < 2 ? "dp[0-1]" : "dp[2-3]", .sequence = i, .completed = true});
  }
  for (const int rank : {0, 1}) record(rank, {.stream = "dp[0-1]", .waited_for = 1 - rank, .call = "all_reduce loss"});
  for (const int rank : {2, 3})
    record(rank, {.stream = world, .sequence = 0, .waited_for = 0, .call = "all_reduce norm"});
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_NE(found->what, "all_reduce loss came in its place");
}

TEST_F(DivergenceTest, WhatDoesNotFitTogetherOutsideOfAllCallsIsOfTheRankThatHasIt) {
  record(1, {.completed = true});
  for (const int rank : {0, 2, 3}) record(rank, {.sequence = 5, .waited_for = 1, .call = "all_gather parameters"});
  drill_.add(
      EventKind::rank_ended,
      {.rank = 1, .step = 5, .phase = Phase::optimizer, .a = 1, .name = "shards do not fit", .detail = "mismatch"});
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::failed);
  EXPECT_THAT(found->ranks, ElementsAre(1));
  EXPECT_EQ(found->what, "shards do not fit");
}

}  // namespace
}  // namespace firedrill
