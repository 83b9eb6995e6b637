#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/job/limits.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Job job_of(Precision precision, const ScalerSpec& scaler) {
  Job job;
  job.precision = {.parameters = precision, .scaler = scaler};
  return job;
}

TEST(Precision, EveryOneMayBeScaledOrNot) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    EXPECT_THAT(mistakes_in(job_of(precision, {})), IsEmpty());
    EXPECT_THAT(mistakes_in(job_of(precision, {.dynamic = true, .initial_scale = 0x1p24})), IsEmpty());
  }
}

TEST(Precision, AScaleThatRoundsSixteenBitsIsRefused) {
  const ScalerSpec odd{.dynamic = true, .initial_scale = 1000, .growth = 1.5, .backoff = 0.3};
  EXPECT_THAT(mistakes_in(job_of(Precision::fp16, odd)),
              ElementsAre("precision.scaler.initial_scale is 1000: with fp16 parameters give a power of two, so that "
                          "scaling is exact",
                          HasSubstr("precision.scaler.growth is 1.5: with fp16 parameters give a power of two"),
                          HasSubstr("precision.scaler.backoff is 0.3: with fp16 parameters give a power of two")));
  EXPECT_THAT(mistakes_in(job_of(Precision::fp32, odd)), IsEmpty());
}

TEST(Precision, AScaleThatIsNoneIsRefused) {
  EXPECT_THAT(mistakes_in(job_of(Precision::bf16, {.dynamic = true, .initial_scale = 0})),
              ElementsAre(HasSubstr("initial_scale is 0: give a positive number"), HasSubstr("give a power of two")));
}

TEST(Precision, ExpertsMayHaveAny) {
  Job job = job_of(Precision::bf16, {});
  job.model.experts = 4;
  EXPECT_THAT(cannot_run(job), IsEmpty());
}

TEST(Precision, TiedEmbeddingsAreAFieldThatChangesBits) {
  Job job;
  const Digest untied = digest_of_job(job);
  job.model.tied_embedding = true;
  EXPECT_THAT(mistakes_in(job), IsEmpty());
  EXPECT_NE(digest_of_job(job), untied);
}

}  // namespace
}  // namespace firedrill
