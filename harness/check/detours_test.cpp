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
    tell(rank, -2, {.stream = stream, .sequence = sequence, .phase = phase, .call = call}, false);
  }
  void came(int rank, std::string_view call, bool again = false, std::string_view stream = dp,
            std::int64_t sequence = 4, Phase phase = Phase::exchange) {
    tell(rank, -3, {.stream = stream, .sequence = sequence, .phase = phase, .call = call}, again);
  }

 private:
  void tell(int rank, std::int64_t what, const Spoken& spoken, bool again) {
    drill_.add(EventKind::call_record, {.rank = rank,
                                        .step = spoken.step,
                                        .phase = spoken.phase,
                                        .a = what,
                                        .b = spoken.sequence,
                                        .c = again ? 1 : 0,
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
  came(2, "all_reduce gradients.bucket0", true, dp, 5);
  end();
  const auto found = blame();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(2));
  EXPECT_EQ(found->sequence, 5);
  EXPECT_EQ(found->what, "it was issued once more");
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
  came(3, "recv activation", false, "pp[1>3]", 3, Phase::forward);
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

}  // namespace
}  // namespace firedrill
