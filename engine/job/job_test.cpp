// What lanes ask of a job, each with the numbers and the remedy.
#include "engine/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firedrill {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Job job_of(const Lanes& lanes) {
  Job job;
  job.name = "job";
  job.model = {.layers = 1, .width = 24, .heads = 4, .hidden = 20, .sequence = 24};
  job.lanes = lanes;
  return job;
}

TEST(JobMistakes, ThereAreNoneWhereLanesDivideAllThatTheyCut) {
  EXPECT_THAT(mistakes_in(job_of({.dp = 3, .tp = 2, .cp = 3})), IsEmpty());
}

TEST(JobMistakes, TensorLanesMustDivideHeadsHiddenUnitsAndWords) {
  EXPECT_THAT(mistakes_in(job_of({.tp = 3})),
              AllOf(Contains(HasSubstr("lanes.tp is 3 and does not divide model.heads 4")),
                    Contains(HasSubstr("lanes.tp is 3 and does not divide model.hidden 20")),
                    Contains(HasSubstr("lanes.tp is 3 and does not divide model.vocabulary 256"))));
}

TEST(JobMistakes, ASequenceMustFallIntoTwoChunksForEachContextLane) {
  EXPECT_THAT(mistakes_in(job_of({.cp = 5})),
              Contains(AllOf(HasSubstr("lanes.cp is 5"), HasSubstr("model.sequence 24"), HasSubstr("multiple of 10"))));
  EXPECT_THAT(mistakes_in(job_of({.tp = 4, .cp = 4})), Contains(HasSubstr("multiple of 32")));
}

TEST(JobMistakes, ThereIsAtLeastOneLaneOfEachKind) {
  EXPECT_THAT(mistakes_in(job_of({.tp = 0})), Contains(HasSubstr("lanes.tp is 0")));
  EXPECT_THAT(mistakes_in(job_of({.cp = -1})), Contains(HasSubstr("lanes.cp is -1")));
  EXPECT_THAT(mistakes_in(job_of({.dp = 0})), Contains(HasSubstr("lanes.dp is 0")));
}

}  // namespace
}  // namespace firedrill
