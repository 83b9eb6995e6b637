#include "faults/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firedrill {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Job job_of(int steps, int every) {
  Job job;
  job.lanes.dp = 4;
  job.steps = steps;
  job.checkpoint.every = every;
  return job;
}
const Layout four{.dp = 4};
std::vector<std::string> mistakes(const FaultSpec& fault) { return mistakes_in_fault(fault, job_of(12, 5), four); }

TEST(FaultMistakes, FaultsThatCanHappenHaveNone) {
  const std::vector<FaultSpec> good = {
      {.at = {.rank = 2, .step = 3, .phase = Phase::backward}},
      {.at = {.rank = 1, .step = 5, .phase = Phase::save, .op = SeamOp::file, .file_op = FileOp::write}},
      {.at = {.attempt = std::nullopt, .rank = 0, .phase = Phase::restore}},
      {.at = {.rank = 0, .step = 12, .phase = Phase::commit, .op = SeamOp::file, .file_op = FileOp::rename}},
      {.at = {.rank = 1, .step = 12, .phase = Phase::commit, .op = SeamOp::collective}},
      {.at = {.rank = 3, .phase = Phase::find}},
      {.at = {.rank = 3, .step = 0, .phase = Phase::rendezvous, .op = SeamOp::store}},
      {.kind = FaultKind::io_error, .at = {.rank = 3, .step = 10, .phase = Phase::validate}},
      {.kind = FaultKind::no_space, .at = {.rank = 3, .file_op = FileOp::create}},
      {.kind = FaultKind::kill_node, .at = {.rank = 3}, .lose_unsynced_data = true, .lose_unsynced_names = true}};
  for (const FaultSpec& fault : good) EXPECT_THAT(mistakes(fault), IsEmpty()) << describe(fault);
}

TEST(FaultMistakes, RankOutsideOfTheLayoutIsNamed) {
  EXPECT_THAT(mistakes({.at = {.rank = 4}}), ElementsAre("at.rank is 4: layout dp=4 has ranks 0 to 3"));
  EXPECT_THAT(mistakes({.at = {.rank = -1}}), ElementsAre(StartsWith("at.rank is -1")));
}

TEST(FaultMistakes, NumbersOutOfRangeAreAllNamedAtOnce) {
  EXPECT_THAT(mistakes({.at = {.attempt = 0, .rank = 9, .step = 13, .nth = 0}, .times = -1}),
              ElementsAre(StartsWith("at.rank is 9"), StartsWith("at.attempt is 0"), StartsWith("at.step is 13"),
                          StartsWith("at.nth is 0"), StartsWith("times is -1")));
}

TEST(FaultMistakes, StepThatSavesNothingIsRefusedWithTheNearestThatDo) {
  for (const Phase phase : {Phase::save, Phase::commit, Phase::validate, Phase::retire}) {
    EXPECT_THAT(mistakes({.at = {.rank = 0, .step = 7, .phase = phase}}), ElementsAre(HasSubstr("5 and 10")));
  }
  EXPECT_THAT(mistakes({.at = {.rank = 0, .step = 11, .phase = Phase::save}}), ElementsAre(HasSubstr("10 and 12")));
  EXPECT_THAT(mistakes({.at = {.rank = 0, .step = 2, .phase = Phase::save}}), ElementsAre(HasSubstr("is 5")));
  EXPECT_THAT(mistakes({.at = {.rank = 0, .step = 12, .phase = Phase::save}}), IsEmpty());
  EXPECT_THAT(mistakes_in_fault({.at = {.rank = 0, .step = 7, .phase = Phase::save}}, job_of(12, 0), four),
              ElementsAre(HasSubstr("only step 12")));
}

TEST(FaultMistakes, PhasesOutsideOfStepsAreHeldAgainstTheStep) {
  EXPECT_THAT(mistakes({.at = {.rank = 0, .step = 2, .phase = Phase::find}}), ElementsAre(HasSubstr("leave at.step")));
  EXPECT_THAT(mistakes({.at = {.rank = 0, .step = 0, .phase = Phase::forward}}),
              ElementsAre(HasSubstr("at.step is 0")));
  EXPECT_THAT(mistakes({.at = {.rank = 0, .phase = Phase::restore}}), ElementsAre(HasSubstr("attempt: any")));
}

TEST(FaultMistakes, OperationsThatNeverOccurThereAreRefused) {
  EXPECT_THAT(mistakes({.at = {.rank = 0, .phase = Phase::backward, .file_op = FileOp::write}}),
              ElementsAre(AllOf(StartsWith("at.phase is backward"), HasSubstr("write"))));
  EXPECT_THAT(mistakes({.at = {.rank = 0, .phase = Phase::forward, .op = SeamOp::send}}),
              ElementsAre(StartsWith("at.phase is forward")));
  EXPECT_THAT(mistakes({.kind = FaultKind::io_error, .at = {.rank = 0, .phase = Phase::exchange}}),
              ElementsAre(StartsWith("at.phase is exchange")));
  EXPECT_THAT(mistakes({.at = {.rank = 1, .phase = Phase::commit, .file_op = FileOp::rename}}),
              ElementsAre(HasSubstr("only rank 0")));
  EXPECT_THAT(mistakes({.at = {.rank = 1, .phase = Phase::retire}}), ElementsAre(HasSubstr("only rank 0")));
  EXPECT_THAT(mistakes({.at = {.rank = 0, .op = SeamOp::compute, .path = "a*"}}), ElementsAre(HasSubstr("at.path")));
  EXPECT_THAT(mistakes({.at = {.rank = 0, .op = SeamOp::compute, .file_op = FileOp::read}}),
              ElementsAre(HasSubstr("one of them")));
  EXPECT_THAT(mistakes_in_fault({.at = {.rank = 0, .op = SeamOp::recv}}, job_of(12, 5), {.dp = 1}),
              ElementsAre(HasSubstr("one rank")));
}

TEST(FaultMistakes, KindsAreHeldAgainstTheirOperations) {
  EXPECT_THAT(mistakes({.kind = FaultKind::io_error, .at = {.rank = 0, .op = SeamOp::send}}),
              ElementsAre(HasSubstr("file operations")));
  EXPECT_THAT(mistakes({.kind = FaultKind::no_space, .at = {.rank = 0, .file_op = FileOp::sync}}),
              ElementsAre(HasSubstr("needs no room")));
  EXPECT_THAT(mistakes({.at = {.rank = 0}, .lose_unsynced_data = true}), ElementsAre(HasSubstr("only kill_node")));
}

FaultSpec kill(std::optional<int> attempt, int times = 1) {
  return {.at = {.attempt = attempt, .rank = 0}, .times = times};
}
FaultSpec save_error(int times) {
  return {
      .kind = FaultKind::io_error, .at = {.attempt = std::nullopt, .rank = 0, .phase = Phase::save}, .times = times};
}

TEST(Budget, FaultsMayEndAsManyAttemptsAsThereAreRestarts) {
  const Job job = job_of(12, 5);
  const std::vector<FaultSpec> three = {kill(1), kill(std::nullopt, 2)};
  EXPECT_EQ(attempts_ended_at_most(three, job), 3);
  EXPECT_THAT(mistakes_in_budget(three, job, 3), IsEmpty());
  EXPECT_THAT(mistakes_in_budget(three, job, 2), ElementsAre(AllOf(HasSubstr("end 3 attempts"), HasSubstr("to 3"))));
}

TEST(Budget, FaultWithoutEndIsRefusedUnlessItsAttemptEnds) {
  const Job job = job_of(12, 5);
  EXPECT_THAT(mistakes_in_budget({kill(std::nullopt, 0)}, job, 50), ElementsAre(HasSubstr("times 0")));
  EXPECT_THAT(mistakes_in_budget({kill(2, 0)}, job, 1), IsEmpty());
}

TEST(Budget, FaultOfAnAttemptThatNeverStartsIsRefused) {
  EXPECT_THAT(mistakes_in_budget({kill(4)}, job_of(12, 5), 2), ElementsAre(HasSubstr("attempts 1 to 3")));
}

TEST(Budget, ErrorsThatOnlyFailTriesEndAPublishByThrees) {
  Job job = job_of(12, 5);
  EXPECT_EQ(attempts_ended_at_most({save_error(2)}, job), 0);
  EXPECT_EQ(attempts_ended_at_most({save_error(2), save_error(1)}, job), 1);
  EXPECT_EQ(attempts_ended_at_most({save_error(7), kill(1)}, job), 3);
  EXPECT_THAT(mistakes_in_budget({save_error(3)}, job, 0), ElementsAre(HasSubstr("end 1 attempts")));
  job.checkpoint.on_error = OnError::continue_training;
  job.checkpoint.failures_max = 1;
  EXPECT_EQ(attempts_ended_at_most({save_error(3)}, job), 0);
}

TEST(Budget, DeathOfANodeThatLosesUnsyncedDataCanBeSurvived) {
  FaultSpec fault = kill(1);
  fault.kind = FaultKind::kill_node;
  fault.lose_unsynced_data = true;
  fault.lose_unsynced_names = true;
  EXPECT_THAT(mistakes_in_budget({fault}, job_of(12, 5), 1), IsEmpty());
}

}  // namespace
}  // namespace firedrill
