#include "faults/budget.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/injector.h"

namespace firedrill {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
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

FaultSpec at_call(int rank, Phase phase, FileOp op, std::optional<int> attempt = std::nullopt) {
  return {.at = {.attempt = attempt, .rank = rank, .phase = phase, .op = SeamOp::file, .file_op = op}};
}
FaultSpec at_call(int rank, Phase phase, SeamOp op) {
  return {.at = {.attempt = std::nullopt, .rank = rank, .phase = phase, .op = op}};
}

TEST(FaultMistakes, StorageAtAStepThatSavesNothingIsRefused) {
  const std::vector<FaultSpec> never = {{.kind = FaultKind::io_error, .at = {.rank = 1, .step = 7}},
                                        {.kind = FaultKind::no_space, .at = {.rank = 0, .step = 7}},
                                        {.at = {.rank = 0, .step = 7, .op = SeamOp::file}},
                                        {.at = {.rank = 0, .step = 7, .file_op = FileOp::write}},
                                        {.at = {.rank = 2, .step = 7, .path = "shards/*"}}};
  for (FaultSpec fault : never) {
    EXPECT_THAT(mistakes(fault), ElementsAre(AllOf(StartsWith("at.step is 7"), HasSubstr("saves nothing"),
                                                   HasSubstr("nearest that do are 5 and 10"))));
    fault.at.step = 10;
    EXPECT_THAT(mistakes(fault), IsEmpty()) << describe(fault);
    fault.at.step.reset();
    EXPECT_THAT(mistakes(fault), IsEmpty()) << describe(fault);
  }
  EXPECT_THAT(mistakes({.at = {.rank = 0, .step = 7}}), IsEmpty());
}

TEST(FaultMistakes, StepsAreHeldAgainstWhatHappensOutsideOfThem) {
  EXPECT_THAT(mistakes({.at = {.rank = 1, .step = 5, .file_op = FileOp::list}}),
              ElementsAre(AllOf(StartsWith("at.step is 5"), HasSubstr("list"), HasSubstr("leave at.step out"))));
  EXPECT_THAT(mistakes({.at = {.rank = 1, .step = 5, .op = SeamOp::store}}), IsEmpty());
  EXPECT_THAT(mistakes({.at = {.rank = 1, .step = 0, .file_op = FileOp::write}}),
              ElementsAre(AllOf(StartsWith("at.step is 0"), HasSubstr("rank 1 never"))));
  EXPECT_THAT(mistakes({.at = {.rank = 0, .step = 0, .file_op = FileOp::write}}), IsEmpty());
  EXPECT_THAT(mistakes({.at = {.rank = 0, .op = SeamOp::store}}), IsEmpty());
}

TEST(FaultMistakes, OperationsThatNoRankDoesInAPhaseAreRefusedWithThoseItDoes) {
  const std::vector<FaultSpec> never = {at_call(0, Phase::save, SeamOp::store),
                                        at_call(0, Phase::save, FileOp::rename),
                                        at_call(0, Phase::commit, FileOp::remove),
                                        at_call(0, Phase::validate, FileOp::write),
                                        at_call(0, Phase::retire, SeamOp::collective),
                                        at_call(0, Phase::retire, FileOp::write),
                                        at_call(0, Phase::find, FileOp::make_directory),
                                        at_call(0, Phase::restore, FileOp::list),
                                        at_call(0, Phase::rendezvous, SeamOp::compute),
                                        at_call(0, Phase::rendezvous, FileOp::read),
                                        at_call(0, Phase::none, FileOp::stat)};
  for (FaultSpec fault : never) {
    for (const int rank : {0, 1}) {
      fault.at.rank = rank;
      EXPECT_THAT(mistakes(fault), testing::SizeIs(1)) << describe(fault);
    }
  }
  EXPECT_THAT(mistakes(never[0]), ElementsAre(AllOf(StartsWith("at.phase is save and the operation store"),
                                                    HasSubstr("one of create, write"))));
  FaultSpec full = {.kind = FaultKind::no_space, .at = {.attempt = 2, .rank = 0, .phase = Phase::restore}};
  EXPECT_THAT(mistakes(full), IsEmpty()) << "it makes the mark";
  full.at.rank = 1;
  EXPECT_THAT(mistakes(full), ElementsAre(HasSubstr("only rank 0")));
}

TEST(FaultMistakes, WhatOnlyTheCoordinatorDoesIsRefusedOnOtherRanks) {
  std::vector<FaultSpec> of_rank_0 = {
      at_call(0, Phase::save, FileOp::make_directory), at_call(0, Phase::save, FileOp::free_space),
      at_call(0, Phase::commit, FileOp::rename),       at_call(0, Phase::commit, FileOp::create),
      at_call(0, Phase::commit, SeamOp::compute),      at_call(0, Phase::validate, FileOp::create),
      at_call(0, Phase::retire, FileOp::remove),       at_call(0, Phase::find, FileOp::write),
      at_call(0, Phase::restore, FileOp::create),      at_call(0, Phase::rendezvous, FileOp::list),
      {.at = {.rank = 0, .file_op = FileOp::rename}},  {.at = {.rank = 0, .file_op = FileOp::remove}}};
  for (FaultSpec& fault : of_rank_0) {
    EXPECT_THAT(mistakes(fault), IsEmpty()) << describe(fault);
    fault.at.rank = 3;
    EXPECT_THAT(mistakes(fault),
                ElementsAre(AllOf(StartsWith("at.rank is 3"), HasSubstr("only rank 0, the coordinator"),
                                  HasSubstr("give rank 0"))));
  }
}

TEST(FaultMistakes, WhatEveryRankDoesIsAccepted) {
  const std::vector<FaultSpec> of_all = {
      at_call(0, Phase::save, FileOp::write),        at_call(0, Phase::save, FileOp::sync_directory),
      at_call(0, Phase::validate, FileOp::stat),     at_call(0, Phase::validate, FileOp::drop_cache),
      at_call(0, Phase::find, FileOp::stat),         at_call(0, Phase::find, FileOp::list),
      at_call(0, Phase::restore, FileOp::read),      at_call(0, Phase::commit, SeamOp::recv),
      at_call(0, Phase::rendezvous, SeamOp::store),  at_call(0, Phase::exchange, SeamOp::collective),
      at_call(0, Phase::exchange, SeamOp::compute),  at_call(0, Phase::save, SeamOp::compute),
      at_call(0, Phase::optimizer, SeamOp::compute), at_call(0, Phase::none, SeamOp::collective)};
  for (FaultSpec fault : of_all) {
    for (fault.at.rank = 0; fault.at.rank < 4; ++fault.at.rank) {
      EXPECT_THAT(mistakes(fault), IsEmpty()) << describe(fault);
    }
  }
}

TEST(FaultMistakes, TheFirstAttemptReadsNothingInItsSearch) {
  EXPECT_THAT(mistakes(at_call(2, Phase::find, FileOp::read, 1)),
              ElementsAre(AllOf(StartsWith("at.attempt is 1"), HasSubstr("attempt: any"))));
  EXPECT_THAT(mistakes(at_call(2, Phase::find, FileOp::read, 2)), IsEmpty());
  EXPECT_THAT(mistakes(at_call(2, Phase::find, FileOp::list, 1)), IsEmpty());
  EXPECT_THAT(mistakes(at_call(0, Phase::find, FileOp::read, 1)), IsEmpty()) << "the coordinator's own record";
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
  EXPECT_THAT(mistakes_in_budget({kill(1), kill(2, 0)}, job, 2), IsEmpty());
}

TEST(Budget, FaultOfAnAttemptThatNeverStartsIsRefused) {
  EXPECT_THAT(mistakes_in_budget({kill(4)}, job_of(12, 5), 2), ElementsAre(HasSubstr("attempts 1 to 3")));
}

TEST(Budget, FaultOfAnAttemptThatNoOtherBringsAboutIsRefused) {
  const Job job = job_of(12, 5);
  const auto never = [](int fault, int attempt) {
    return ElementsAre(AllOf(HasSubstr(fmt::format("faults[{}]", fault)),
                             HasSubstr(fmt::format("waits for attempt {}", attempt)), HasSubstr("never starts")));
  };
  EXPECT_THAT(mistakes_in_budget({kill(2)}, job, 9), never(0, 2));
  EXPECT_THAT(mistakes_in_budget({kill(1), kill(3)}, job, 9), never(1, 3));
  EXPECT_THAT(mistakes_in_budget({kill(1), kill(1), kill(3)}, job, 9), never(2, 3)) << "an attempt ends once";
  EXPECT_THAT(mistakes_in_budget({kill(1, 5), kill(3)}, job, 9), never(1, 3)) << "times 5 in an attempt ends only it";
  EXPECT_THAT(mistakes_in_budget({save_error(2), kill(2)}, job, 9), never(1, 2)) << "a third try succeeds";

  EXPECT_THAT(mistakes_in_budget({kill(2), kill(1)}, job, 9), IsEmpty());
  EXPECT_THAT(mistakes_in_budget({kill(1), kill(std::nullopt), kill(3)}, job, 9), IsEmpty());
  EXPECT_THAT(mistakes_in_budget({kill(std::nullopt, 2), kill(3)}, job, 9), IsEmpty());
  EXPECT_THAT(mistakes_in_budget({save_error(3), kill(2)}, job, 9), IsEmpty());
  FaultSpec perhaps = kill(1);
  perhaps.may_not_fire = true;
  EXPECT_THAT(mistakes_in_budget({perhaps, kill(2)}, job, 9), IsEmpty());
}

TEST(Budget, MoreFaultsThanARankCanHoldAreRefusedWithTheirNumber) {
  std::vector<FaultSpec> plan(Injector::capacity, kill(std::nullopt));
  EXPECT_THAT(mistakes_in_number(plan), IsEmpty());
  plan.push_back({.at = {.rank = 1}});
  EXPECT_THAT(mistakes_in_number(plan), IsEmpty()) << "another rank has room of its own";
  plan.push_back(kill(3));
  EXPECT_THAT(mistakes_in_number(plan), ElementsAre(AllOf(StartsWith("faults[65]"), HasSubstr("one of 65"),
                                                          HasSubstr("rank 0 in attempt 3"), HasSubstr("at most 64"))));
  plan[0].at.attempt = 2;
  EXPECT_THAT(mistakes_in_number(plan), IsEmpty()) << "at most 64 in each attempt";
}

TEST(Budget, ErrorsThatOnlyFailTriesEndAPublishByThrees) {
  Job job = job_of(12, 5);
  EXPECT_EQ(attempts_ended_at_most({save_error(2)}, job), 0);
  EXPECT_EQ(attempts_ended_at_most({save_error(2), save_error(1)}, job), 1);
  EXPECT_EQ(attempts_ended_at_most({save_error(7), kill(1)}, job), 3);
  EXPECT_THAT(mistakes_in_budget({save_error(3)}, job, 0), ElementsAre(HasSubstr("end 1 attempts")));
  FaultSpec late = save_error(1);
  late.kind = FaultKind::late_visibility;
  late.looks = 3;
  EXPECT_EQ(attempts_ended_at_most({late}, job), 1) << "each try looks once";
  job.checkpoint.on_error = OnError::continue_training;
  job.checkpoint.failures_max = 1;
  FaultSpec early = save_error(3);
  early.at.step = 5;
  EXPECT_EQ(attempts_ended_at_most({early}, job), 0);
  early.at.step = 12;
  EXPECT_EQ(attempts_ended_at_most({early}, job), 1) << "behind the last step there is nothing to go on with";
  EXPECT_EQ(attempts_ended_at_most({save_error(3)}, job), 1) << "it may be the last publish";
}

TEST(Budget, DeathOfANodeThatLosesUnsyncedDataCanBeSurvived) {
  FaultSpec fault = kill(1);
  fault.kind = FaultKind::kill_node;
  fault.lose_unsynced_data = true;
  fault.lose_unsynced_names = true;
  EXPECT_THAT(mistakes_in_budget({fault}, job_of(12, 5), 1), IsEmpty());
}

// The fourth update is the rerun of the third.
TEST(Cover, TwoFaultsMayDamageAComputationAndItsRerunAlike) {
  Layout layout{.dp = 2};
  layout.rerun = true;
  const auto nan_at = [](int nth) {
    return FaultSpec{.kind = FaultKind::nan,
                     .at = {.rank = 0, .step = 6, .phase = Phase::optimizer, .nth = nth},
                     .target = Target::parameter};
  };
  EXPECT_THAT(mistakes_in_cover({nan_at(3)}, layout), IsEmpty());
  EXPECT_THAT(mistakes_in_cover({nan_at(3), nan_at(4)}, layout),
              ElementsAre(AllOf(StartsWith("faults[1]"), HasSubstr("faults[0] can damage"))));
  FaultSpec other = nan_at(4);
  other.at.step = std::nullopt;
  EXPECT_THAT(mistakes_in_cover({nan_at(3), other}, layout), SizeIs(1)) << "any step";
  other.at.step = 7;
  EXPECT_THAT(mistakes_in_cover({nan_at(3), other}, layout), IsEmpty());
  other = nan_at(4);
  other.at.rank = 1;
  EXPECT_THAT(mistakes_in_cover({nan_at(3), other}, layout), IsEmpty());
  other = nan_at(4);
  other.kind = FaultKind::bit_flip;
  EXPECT_THAT(mistakes_in_cover({nan_at(3), other}, layout), IsEmpty()) << "they differ";
  layout.replica_check = 1;
  EXPECT_THAT(mistakes_in_cover({nan_at(3), nan_at(4)}, layout), IsEmpty()) << "the replicas differ";
}

}  // namespace
}  // namespace firedrill
