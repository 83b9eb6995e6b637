// A checkpoint of a job that differs in one field is refused by every rank: the field is named with both values, and
// nothing is loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

Error refusal_for(const std::function<void(Job&)>& change) {
  TestDisk disk;
  expect_ok(TestAttempt(disk).train({2}));
  TestAttempt attempt(disk, 2);
  change(attempt.job);
  std::atomic<int> restored = 0;
  const Error error = cause(attempt.run([&](const CheckpointContext& ctx, Protocol& p) -> Status {
    FD_TRY_VOID(p.claim_attempt(ctx));
    FD_TRY(const FindResult found, p.find(ctx));
    ++restored;
    return {};
  }));
  EXPECT_EQ(error.code, Code::mismatch);
  EXPECT_EQ(restored, 0) << "no rank gets as far as to read it";
  EXPECT_THAT(error.message, HasSubstr("is of another job"));
  return error;
}

TEST(OtherJob, AnotherVocabularyIsNamedWithBothSides) {
  EXPECT_THAT(refusal_for([](Job& job) { job.model.vocabulary = 512; }).message,
              HasSubstr("model.vocabulary: 256 there, 512 here"));
}

TEST(OtherJob, AnotherModelAndOtherLanesAreNamedWithBothSides) {
  EXPECT_THAT(refusal_for([](Job& job) { job.model.layers = 3; }).message, HasSubstr("model.layers: 1 there, 3 here"));
  EXPECT_THAT(refusal_for([](Job& job) { job.lanes.dp = 8; }).message, HasSubstr("lanes.dp: 4 there, 8 here"));
}

TEST(OtherJob, AnotherBatchIsNamedWithBothSides) {
  const Error error = refusal_for([](Job& job) { job.batch.accumulation = 2; });
  EXPECT_THAT(error.message, HasSubstr("batch.accumulation: 1 there, 2 here"));
  EXPECT_THAT(error.message, HasSubstr("with another batch convergence must be revalidated"));
}

}  // namespace
}  // namespace firedrill
