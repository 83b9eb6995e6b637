#include "engine/comm/call_order.h"

#include <gtest/gtest.h>

#include <string_view>

namespace firedrill {
namespace {

CallOrder::Step call_of(char letter) {
  return {.stream = 0,
          .purpose = static_cast<std::uint32_t>(letter),
          .op = CollectiveOp::all_reduce,
          .phase = Phase::exchange};
}

using Again = CallOrder::Again;

// Notes the calls of one step, a letter each; answers with the departure, if there was one.
std::optional<CallOrder::Departure> step(CallOrder& order, std::string_view calls) {
  bool departed = false;
  bool begins = true;
  for (const char letter : calls) {
    if (order.note(call_of(letter), begins)) {
      EXPECT_FALSE(departed) << "one step, two departures";
      departed = true;
    }
    begins = false;
  }
  return departed ? order.departure() : std::nullopt;
}

TEST(CallOrder, StepsThatAreAlikeDoNotDepartAndTheFirstCannot) {
  CallOrder order;
  EXPECT_FALSE(step(order, "abc"));
  EXPECT_FALSE(order.due());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(step(order, "abc"));
}

TEST(CallOrder, KnowsWhatIsDueInTheMiddleOfAStep) {
  CallOrder order;
  step(order, "abc");
  step(order, "a");
  ASSERT_TRUE(order.due());
  EXPECT_EQ(*order.due(), call_of('b'));
}

TEST(CallOrder, CallThatIsLeftOutIsWhatWasDue) {
  CallOrder order;
  step(order, "abcd");
  const auto departure = step(order, "acd");
  ASSERT_TRUE(departure);
  EXPECT_EQ(departure->due, call_of('b'));
  EXPECT_EQ(departure->came, call_of('c'));
  EXPECT_EQ(departure->again, Again::no);
  EXPECT_FALSE(order.due());
}

TEST(CallOrder, CallThatIsMadeTwiceComesAgain) {
  CallOrder order;
  step(order, "abc");
  const auto departure = step(order, "abbc");
  ASSERT_TRUE(departure);
  EXPECT_EQ(departure->due, call_of('c'));
  EXPECT_EQ(departure->came, call_of('b'));
  EXPECT_EQ(departure->again, Again::yes);
}

// Buckets take turns between two groups: the calls behind it tell which of two it was, or cannot.
TEST(CallOrder, ACallOfTwoThatTakeTurnsIsLeftOutOrMadeTwiceByWhatComesBehindIt) {
  const auto again_of = [](std::string_view usual, std::string_view calls) {
    CallOrder order;
    step(order, usual);
    const auto departure = step(order, calls);
    EXPECT_TRUE(departure);
    return departure->again;
  };
  EXPECT_EQ(again_of("xyxyxz", "xx"), Again::perhaps);
  EXPECT_EQ(again_of("xyxyxz", "xxyxyxz"), Again::yes);
  EXPECT_EQ(again_of("xyxyxz", "xxyxz"), Again::no);
  EXPECT_EQ(again_of("xyz", "xxyz"), Again::yes);
}

TEST(CallOrder, LastCallOfAStepLeftOutShowsWhenTheNextBegins) {
  CallOrder order;
  step(order, "abc");
  step(order, "ab");
  EXPECT_TRUE(order.note(call_of('a'), true));
  const auto departure = order.departure();
  ASSERT_TRUE(departure);
  EXPECT_EQ(departure->due, call_of('c'));
  EXPECT_EQ(departure->came, call_of('a'));
  EXPECT_TRUE(departure->late);
}

TEST(CallOrder, LastCallOfAStepMadeTwiceIsOneTooMany) {
  CallOrder order;
  step(order, "abc");
  const auto departure = step(order, "abcc");
  ASSERT_TRUE(departure);
  EXPECT_FALSE(departure->due);
  EXPECT_EQ(departure->again, Again::yes);
}

TEST(CallOrder, StepsOfASecondSortDepartOnceAndAreKnownFromThenOn) {
  CallOrder order;
  step(order, "abc");
  EXPECT_TRUE(step(order, "abxc"));
  EXPECT_FALSE(step(order, "abc"));
  EXPECT_FALSE(step(order, "abxc"));
  EXPECT_TRUE(step(order, "abyc"));
}

TEST(CallOrder, KeepsTheSortsThatItMetLast) {
  CallOrder order;
  for (const char* sort : {"abc", "abd", "abe", "abf", "abg"}) step(order, sort);
  EXPECT_FALSE(step(order, "abd"));
  EXPECT_TRUE(step(order, "abc"));
}

}  // namespace
}  // namespace firedrill
