// Which storage faults cannot happen as planned, and which no system could survive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/budget.h"

namespace firedrill {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Job nano() {
  Job job;
  job.lanes.dp = 4;
  job.steps = 12;
  job.checkpoint.every = 2;
  return job;
}
std::vector<std::string> mistakes(const FaultSpec& fault) { return mistakes_in_fault(fault, nano(), {.dp = 4}); }
std::vector<std::string> budget(const std::vector<FaultSpec>& faults, int restarts = 9) {
  return mistakes_in_budget(faults, nano(), restarts);
}
FaultSpec kill_at(std::int64_t step) { return {.at = {.rank = 1, .step = step, .phase = Phase::backward}}; }
FaultSpec found_damaged(int times = 1, std::string path = "shards/*") {
  return {.kind = FaultKind::bit_flip_at_rest,
          .at = {.attempt = 2, .rank = 2, .phase = Phase::find, .path = std::move(path)},
          .times = times};
}

TEST(StorageFaultMistakes, EveryKindCanBePlannedSomewhere) {
  for (const FaultKindInfo& info : fault_kinds()) {
    FaultSpec fault{.kind = info.kind, .at = {.attempt = 2, .rank = 0}};
    const bool takes_time =
        info.kind == FaultKind::slow_disk || info.kind == FaultKind::slow || info.kind == FaultKind::slow_shard;
    if (takes_time || info.harm == Harm::message) fault.delay = std::chrono::milliseconds(1);
    if (info.kind == FaultKind::clock_skew) fault.behind = std::chrono::hours(1);
    EXPECT_THAT(mistakes(fault), IsEmpty()) << info.name;
  }
}

TEST(StorageFaultMistakes, OperationsThatAKindIsNotAboutAreNamedWithThoseItIsAbout) {
  EXPECT_THAT(mistakes({.kind = FaultKind::torn_write, .at = {.rank = 0, .file_op = FileOp::sync}}),
              ElementsAre("at.op is sync: torn_write is for write"));
  EXPECT_THAT(mistakes({.kind = FaultKind::lying_sync, .at = {.rank = 0, .file_op = FileOp::read}}),
              ElementsAre("at.op is read: lying_sync is for sync or sync_directory"));
  EXPECT_THAT(mistakes({.kind = FaultKind::stale_listing, .at = {.rank = 1, .phase = Phase::backward}}),
              ElementsAre(StartsWith("at.phase is backward")));
}

TEST(StorageFaultMistakes, AfterMeansNothingForWhatChangesTheCall) {
  for (const FaultKindInfo& info : fault_kinds()) {
    if (info.has_after) continue;
    EXPECT_THAT(mistakes({.kind = info.kind,
                          .at = {.attempt = 2, .rank = 0, .when = When::after},
                          .delay = std::chrono::milliseconds(1)}),
                ElementsAre(AllOf(StartsWith("at.when is after"), HasSubstr(std::string(info.name)))));
  }
}

TEST(StorageFaultMistakes, OptionsAreChecked) {
  EXPECT_THAT(mistakes({.kind = FaultKind::slow_disk, .at = {.rank = 0}}), ElementsAre(StartsWith("slow_disk.delay")));
  const auto skewed = [](Duration ahead, Duration behind) {
    return mistakes({.kind = FaultKind::clock_skew, .at = {.rank = 0}, .ahead = ahead, .behind = behind});
  };
  EXPECT_THAT(skewed(Duration{0}, Duration{0}), ElementsAre(StartsWith("clock_skew needs one of")));
  EXPECT_THAT(skewed(Duration{1}, Duration{1}), ElementsAre(StartsWith("clock_skew needs one of")));
  EXPECT_THAT(skewed(Duration{1}, Duration{0}), IsEmpty());
  EXPECT_THAT(mistakes({.kind = FaultKind::late_visibility, .at = {.attempt = 2, .rank = 0}, .looks = -1}),
              ElementsAre(StartsWith("late_visibility.looks")));
  EXPECT_THAT(mistakes(found_damaged(1, "attempts/*")), ElementsAre(HasSubstr("below shards/ and manifests/ only")));
  EXPECT_THAT(mistakes(found_damaged(1, "manifests/6-*")), IsEmpty());
}

TEST(StorageBudget, ALyingSyncAndAPowerLossAreBeyondAnySystem) {
  const FaultSpec lie{.kind = FaultKind::lying_sync, .at = {.rank = 3}, .times = 0};
  const std::vector<FaultSpec> losses = {
      {.kind = FaultKind::lose_unsynced_data, .at = {.rank = 0}},
      {.kind = FaultKind::lose_unsynced_names, .at = {.rank = 0}},
      {.kind = FaultKind::kill_node, .at = {.rank = 0}, .lose_unsynced_data = true},
      {.kind = FaultKind::kill_node, .at = {.rank = 0}, .lose_unsynced_names = true}};
  for (const FaultSpec& loss : losses) {
    EXPECT_THAT(budget({loss, lie}),
                ElementsAre(AllOf(StartsWith("faults[1]"), HasSubstr("faults[0]"), HasSubstr("beyond any system"))));
    EXPECT_THAT(budget({loss}), IsEmpty());
  }
  EXPECT_THAT(budget({lie, {.kind = FaultKind::kill_node, .at = {.rank = 0}}}), IsEmpty());
}

TEST(StorageBudget, OneValidatedCheckpointMustStayIntact) {
  EXPECT_THAT(budget({kill_at(7), found_damaged()}), IsEmpty());
  EXPECT_THAT(budget({kill_at(7), found_damaged(2)}),
              ElementsAre(AllOf(StartsWith("faults[1]"), HasSubstr("the loss of the last validated one"))));
  EXPECT_THAT(budget({kill_at(7), found_damaged(), found_damaged()}), ElementsAre(StartsWith("faults[2]")));
  EXPECT_THAT(budget({kill_at(7), found_damaged(0)}), ElementsAre(HasSubstr("every checkpoint that is kept")));
  EXPECT_THAT(budget({kill_at(7), found_damaged(0, "shards/6-1-1/*")}), IsEmpty()) << "it can hit one only";
  EXPECT_THAT(budget({kill_at(7), found_damaged(0, "shards/6-1-1/*"), found_damaged(0, "manifests/4-1-1")}),
              ElementsAre(StartsWith("faults[2]")));
  EXPECT_THAT(budget({kill_at(3), found_damaged()}), ElementsAre(HasSubstr("1 may be all there are")));
  FaultSpec read_back = found_damaged(3);
  read_back.at.attempt = 1;
  read_back.at.phase = Phase::validate;
  EXPECT_THAT(budget({read_back}), IsEmpty()) << "what is not validated yet is made anew";
}

TEST(StorageBudget, WhatEndsNothingNeedsNoRestart) {
  const FaultSpec slow{.kind = FaultKind::slow_disk,
                       .at = {.attempt = std::nullopt, .rank = 0},
                       .times = 0,
                       .delay = std::chrono::milliseconds(20)};
  EXPECT_THAT(budget({slow}, 0), IsEmpty());
  EXPECT_THAT(budget({{.kind = FaultKind::clock_skew, .at = {.rank = 0}}}, 0), IsEmpty());
  FaultSpec waits = kill_at(9);
  waits.at.attempt = 2;
  EXPECT_THAT(budget({slow, waits}), ElementsAre(HasSubstr("so it never starts")));
  FaultSpec too_slow = slow;
  too_slow.delay = std::chrono::seconds(5);
  EXPECT_THAT(budget({too_slow}), ElementsAre(HasSubstr("longer than its watchdog allows")));
}

}  // namespace
}  // namespace firedrill
