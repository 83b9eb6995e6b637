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

// Notes the calls of one step, a letter each; answers with the departure, if there was one.
std::optional<CallOrder::Departure> step(CallOrder& order, std::string_view calls) {
  std::optional<CallOrder::Departure> found;
  bool begins = true;
  for (const char letter : calls) {
    const auto departure = order.note(call_of(letter), begins);
    if (departure) {
      EXPECT_FALSE(found) << "one step, two departures";
      found = departure;
    }
    begins = false;
  }
  return found;
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
  EXPECT_FALSE(departure->again);
  EXPECT_FALSE(order.due());
}

TEST(CallOrder, CallThatIsMadeTwiceComesAgain) {
  CallOrder order;
  step(order, "abc");
  const auto departure = step(order, "abbc");
  ASSERT_TRUE(departure);
  EXPECT_EQ(departure->due, call_of('c'));
  EXPECT_EQ(departure->came, call_of('b'));
  EXPECT_TRUE(departure->again);
}

TEST(CallOrder, LastCallOfAStepLeftOutShowsWhenTheNextBegins) {
  CallOrder order;
  step(order, "abc");
  step(order, "ab");
  const auto departure = order.note(call_of('a'), true);
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
  EXPECT_TRUE(departure->again);
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
