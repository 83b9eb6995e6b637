#include "harness/explore/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firedrill {
namespace {

using testing::HasSubstr;

const CheckpointId two{.step = 2, .attempt = 1, .trial = 1};
const CheckpointId four{.step = 4, .attempt = 1, .trial = 1};

CheckAnswer restored(const CheckpointId& id) { return {.restored = true, .golden = true, .found = id}; }

TEST(Oracle, TheAcknowledgedOneOrANewerOneIsRight) {
  EXPECT_EQ(violation_of(restored(two), two), "");
  EXPECT_EQ(violation_of(restored(four), two), "");
  EXPECT_EQ(violation_of(restored(two), {}), "");
}

TEST(Oracle, LessThanWhatWasAcknowledgedIsWrong) {
  EXPECT_THAT(violation_of(restored(two), four), HasSubstr("4-1-1 was acknowledged, and 2-1-1 was restored"));
}

TEST(Oracle, AStartFromStepZeroIsRightOnlyWhereNothingWasAcknowledged) {
  EXPECT_EQ(violation_of({.fresh = true}, {}), "");
  EXPECT_THAT(violation_of({.fresh = true}, two), HasSubstr("begin at step 0"));
}

TEST(Oracle, AnErrorIsNeverRight) {
  EXPECT_THAT(violation_of({.trouble = "rank 0: corrupted"}, {}), HasSubstr("rank 0: corrupted"));
  EXPECT_THAT(violation_of({.trouble = "rank 0: corrupted"}, two), HasSubstr("2-1-1 was acknowledged"));
}

TEST(Oracle, AStateUnlikeTheGoldenIsWrongHoweverNewItIs) {
  CheckAnswer answer = restored(four);
  answer.golden = false;
  answer.trouble = "rank 1 restored w of step 4 unlike the golden";
  EXPECT_THAT(violation_of(answer, two), HasSubstr("unlike the golden"));
}

}  // namespace
}  // namespace firedrill
