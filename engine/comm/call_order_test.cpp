#include "engine/comm/call_order.h"

#include <gtest/gtest.h>

#include <string_view>

namespace firedrill {
namespace {

CallOrder::Item call_of(char letter) {
  return {.stream = 0,
          .purpose = static_cast<std::uint32_t>(letter),
          .op = CollectiveOp::all_reduce,
          .phase = Phase::exchange};
}

using Again = CallOrder::Again;

// Notes the calls of one step, a letter each; answers with the divergence, if there was one.
std::optional<CallOrder::Divergence> step(CallOrder& order, std::string_view calls) {
  bool diverged = false;
  bool begins = true;
  for (const char letter : calls) {
    if (order.note(call_of(letter), begins)) {
      EXPECT_FALSE(diverged) << "one step, two divergences";
      diverged = true;
    }
    begins = false;
  }
  return diverged ? order.divergence() : std::nullopt;
}

TEST(CallOrder, StepsThatAreAlikeDoNotDivergeAndTheFirstCannot) {
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
  const auto divergence = step(order, "acd");
  ASSERT_TRUE(divergence);
  EXPECT_EQ(divergence->due, call_of('b'));
  EXPECT_EQ(divergence->came, call_of('c'));
  EXPECT_EQ(divergence->again, Again::no);
  EXPECT_FALSE(order.due());
}

TEST(CallOrder, CallThatIsMadeTwiceComesAgain) {
  CallOrder order;
  step(order, "abc");
  const auto divergence = step(order, "abbc");
  ASSERT_TRUE(divergence);
  EXPECT_EQ(divergence->due, call_of('c'));
  EXPECT_EQ(divergence->came, call_of('b'));
  EXPECT_EQ(divergence->again, Again::yes);
}

// Buckets take turns between two groups: the calls behind it tell which of two it was, or cannot.
TEST(CallOrder, ACallOfTwoThatTakeTurnsIsLeftOutOrMadeTwiceByWhatComesBehindIt) {
  const auto again_of = [](std::string_view usual, std::string_view calls) {
    CallOrder order;
    step(order, usual);
    const auto divergence = step(order, calls);
    EXPECT_TRUE(divergence);
    return divergence->again;
  };
  EXPECT_EQ(again_of("xyxyxz", "xx"), Again::perhaps);
  EXPECT_EQ(again_of("xyxyxz", "xxyxyxz"), Again::yes);
  EXPECT_EQ(again_of("xyxyxz", "xxyxz"), Again::no);
  EXPECT_EQ(again_of("xyz", "xxyz"), Again::yes);
  EXPECT_EQ(again_of("xyxyxz", "xxyyxz"), Again::no);  // two of them changed places
  EXPECT_EQ(again_of("xyz", "xxz"), Again::no);
}

TEST(CallOrder, LastCallOfAStepLeftOutShowsWhenTheNextBegins) {
  CallOrder order;
  step(order, "abc");
  step(order, "ab");
  EXPECT_TRUE(order.note(call_of('a'), true));
  const auto divergence = order.divergence();
  ASSERT_TRUE(divergence);
  EXPECT_EQ(divergence->due, call_of('c'));
  EXPECT_FALSE(divergence->came);
}

TEST(CallOrder, ACallLeftOutShowsWhenTheStepIsSaidToBeOver) {
  CallOrder order;
  step(order, "abc");
  EXPECT_FALSE(order.end_step());
  step(order, "ab");
  EXPECT_TRUE(order.end_step());
  EXPECT_EQ(order.divergence()->due, call_of('c'));
  EXPECT_FALSE(order.end_step());
}

TEST(CallOrder, KnowsWhatIsDueAheadOfAStepIfAllBeganAlike) {
  CallOrder order;
  EXPECT_FALSE(order.due_first());
  step(order, "abc");
  order.end_step();
  EXPECT_EQ(order.due_first(), call_of('a'));
  step(order, "xbc");
  order.end_step();
  EXPECT_FALSE(order.due_first());
}

TEST(CallOrder, LastCallOfAStepMadeTwiceIsOneTooMany) {
  CallOrder order;
  step(order, "abc");
  const auto divergence = step(order, "abcc");
  ASSERT_TRUE(divergence);
  EXPECT_FALSE(divergence->due);
  EXPECT_EQ(divergence->again, Again::yes);
}

TEST(CallOrder, StepsOfASecondKindDivergeOnceAndAreKnownFromThenOn) {
  CallOrder order;
  step(order, "abc");
  EXPECT_TRUE(step(order, "abxc"));
  EXPECT_FALSE(step(order, "abc"));
  EXPECT_FALSE(step(order, "abxc"));
  EXPECT_TRUE(step(order, "abyc"));
}

TEST(CallOrder, KeepsTheKindsThatItMetLast) {
  CallOrder order;
  for (const char* kind : {"abc", "abd", "abe", "abf", "abg", "abh", "abi", "abj", "abk"}) step(order, kind);
  EXPECT_FALSE(step(order, "abd"));
  EXPECT_TRUE(step(order, "abc"));
}

}  // namespace
}  // namespace firedrill
