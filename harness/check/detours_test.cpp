#include "harness/check/detours.h"

#include <array>

#include "harness/check/test_calls.h"

namespace firedrill {
namespace {

using testing::ElementsAre;

// Ranks tell where their last step went another way.
class DetourTest : public CallsTest {
 protected:
  static constexpr std::string_view cp = "cp[0-1]";

  void due(int rank, std::string_view call, std::string_view stream = dp, std::int64_t sequence = 4,
           Phase phase = Phase::exchange) {
    tell(rank, -2, {.stream = stream, .sequence = sequence, .phase = phase, .call = call});
  }
  void came(int rank, std::string_view call, Detour::Again again = Detour::Again::no, std::string_view stream = dp,
            std::int64_t sequence = 4, Phase phase = Phase::exchange) {
    tell(rank, -3, {.stream = stream, .sequence = sequence, .phase = phase, .call = call}, again);
  }

 private:
  void tell(int rank, std::int64_t what, const Spoken& spoken, Detour::Again again = Detour::Again::no) {
    drill_.add(EventKind::call_record, {.rank = rank,
                                        .step = spoken.step,
                                        .phase = spoken.phase,
                                        .a = what,
                                        .b = spoken.sequence,
                                        .c = static_cast<std::int64_t>(again),
                                        .name = spoken.stream,
                                        .detail = spoken.call});
  }
};

TEST_F(DetourTest, WhoLeftACallOutIsNamedInItThoughOthersShowItElsewhere) {
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

TEST_F(DetourTest, ACallThatCameTwiceIsNamedWhereItCameAgain) {
  for (const int rank : {0, 1, 2, 3}) record(rank, {});
  due(2, "all_reduce gradients.bucket1");
  came(2, "all_reduce gradients.bucket0", Detour::Again::yes, dp, 5);
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->sequence, 5);
  EXPECT_EQ(found->what, "it was issued once more");
}

TEST_F(DetourTest, WhatWasLeftOutOrMadeTwiceIsToldByTheCallInWhichTheRankWaits) {
  const auto named_if_it_waits_in = [&](std::string_view stream) {
    const auto events = drill_.events;
    record(1, {.stream = stream, .sequence = 9, .waited_for = 0, .call = "all_reduce gradients"});
    record(2, {.sequence = 4, .waited_for = 1, .call = "all_reduce gradients"});
    due(1, "all_reduce gradients", dp, 4);
    came(1, "all_reduce gradients.cp", Detour::Again::perhaps, cp, 7);
    const auto found = blame();
    drill_.events = events;
    return found ? found->stream : "";
  };
  EXPECT_EQ(named_if_it_waits_in(cp), cp);
  EXPECT_EQ(named_if_it_waits_in(dp), dp);
}

TEST_F(DetourTest, AWayOnWhichNobodyIsMissedIsAStepOfAnotherSort) {
  for (const int rank : {0, 1, 2}) record(rank, {.waited_for = 3});
  due(0, "all_reduce norm");
  came(0, "all_gather replica_check");
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, BlameKind::missing);
  EXPECT_THAT(found->ranks, ElementsAre(3));
}

TEST_F(DetourTest, OfTwoTheEarlierIsNamed) {
  record(0, {.call = "all_reduce gradients.bucket2"});
  for (const int rank : {2, 3}) record(rank, {.call = "all_reduce gradients.bucket1"});
  record(1,
         {.stream = "pp[1>3]", .sequence = 2, .phase = Phase::forward, .completed = true, .call = "send activation"});
  due(0, "all_reduce gradients.bucket1");
  came(0, "all_reduce gradients.bucket2");
  due(3, "recv activation", "pp[1>3]", 2, Phase::forward);
  came(3, "recv activation", Detour::Again::no, "pp[1>3]", 3, Phase::forward);
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(3));
  EXPECT_EQ(found->stream, "pp[1>3]");
}

TEST_F(DetourTest, WhoGaveUpIsMissingFromTheCallThatWasDue) {
  for (const int rank : {0, 1}) record(rank, {.stream = cp, .sequence = 7, .waited_for = 2, .call = "all_gather keys"});
  drill_.add(
      EventKind::call_record,
      {.rank = 2, .step = 5, .phase = Phase::exchange, .a = -1, .b = 4, .name = dp, .detail = "all_reduce gradients"});
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
TEST_F(DetourTest, WhoGaveUpInItsFirstStepIsMissingWhereTheRankOfTheSameWayWentOn) {
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
TEST_F(DetourTest, WhoPartsFromTheWayOfMostInTheFirstStepIsNamed) {
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

TEST_F(DetourTest, OfTwoThatPartInTheFirstStepNobodyKnowsWhoIsRight) {
  record(0, {.stream = cp, .call = "all_reduce gradients.1"});
  record(1, {.stream = cp, .call = "all_reduce gradients.2"});
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(0, 1));
}

TEST_F(DetourTest, WhatDoesNotFitTogetherOutsideOfAllCallsIsOfTheRankThatHasIt) {
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
