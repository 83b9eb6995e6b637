#include "harness/run/hunt.h"

#include <gtest/gtest.h>

namespace firedrill {
namespace {

constexpr Property first{.name = "first", .summary = "", .judge = nullptr};
constexpr Property second{.name = "second", .summary = "", .judge = nullptr};

std::vector<Judged> judged_as(Outcome of_first, Outcome of_second) {
  std::vector<Judged> judged(2);
  judged[0].property = &first;
  judged[0].verdict.outcome = of_first;
  judged[0].verdict.evidence = "seen by the first";
  judged[1].property = &second;
  judged[1].verdict.outcome = of_second;
  judged[1].verdict.evidence = "seen by the second";
  return judged;
}

TEST(Hunt, AMutantIsCaughtByAPropertyThatFailedAndNotByOneThatIsUnknown) {
  const auto judged = judged_as(Outcome::unknown, Outcome::fail);
  const auto found = catch_of(RunVerdict::fail, judged, "first");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->property, "second");
  EXPECT_EQ(found->evidence, "seen by the second");
  EXPECT_FALSE(catch_of(RunVerdict::unknown, judged_as(Outcome::unknown, Outcome::pass), "first"));
}

TEST(Hunt, AFailedCheckOfTheEngineCatchesNoMutant) {
  // The verdict is a failure, and no property says of what.
  EXPECT_FALSE(catch_of(RunVerdict::fail, judged_as(Outcome::pass, Outcome::unknown), "first"));
}

TEST(Hunt, AJobThatNeverEndsCatchesOnlyAMutantThatIsExpectedToShowSo) {
  const auto judged = judged_as(Outcome::pass, Outcome::pass);
  EXPECT_FALSE(catch_of(RunVerdict::liveness, judged, "first"));
  const auto found = catch_of(RunVerdict::liveness, judged, "liveness");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->property, "liveness");
}

}  // namespace
}  // namespace firedrill
