// The sweep hits every position and no other, tells what came of it, and is caught out by a broken engine.
#include "harness/explore/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "engine/model/numerics.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two saves, and a kill behind the first of them.
Plan two_saves(const std::string& mutant = {}) {
  const Loaded<Scenario> scenario = load_scenario(
      "scenarios/storage/one_publish.yaml",
      {.set = {"faults=[{kill: {}, at: {rank: 1, step: 3, phase: backward}}]"}, .properties = {}, .world = {}});
  EXPECT_THAT(scenario.mistakes, IsEmpty());
  return make_plan(*scenario.value, {.seed = {}, .mutant = mutant, .settings = {}});
}

struct Swept {
  std::int64_t positions = 0;
  std::map<SweepOutcome, std::int64_t> outcomes;
  std::vector<SweepFailure> failures;
  bool complete = true;
};

// One session for all: what one sweep computed is looked up by the others.
class Sweep : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    pin_numerics();  // a test may be the first in its process to compute anything
    session_ = std::make_unique<Session>(SessionOptions{.golden_directory = "golden"});
  }
  static void TearDownTestSuite() { session_.reset(); }

  static Swept sweep(const SweepOptions& options, const std::string& mutant = {}) {
    const Plan base = sweep_base(two_saves(mutant), options.kind);
    Swept all;
    for (const FaultSpec& group : sweep_groups(base, options, 2)) {
      Result<SweptGroup> swept = sweep_group(*session_, base, group, options);
      EXPECT_TRUE(swept) << describe(group);
      if (!swept) continue;
      all.positions += swept->positions;
      for (const auto& [outcome, count] : swept->outcomes) all.outcomes[outcome] += count;
      for (SweepFailure& failure : swept->failures) all.failures.push_back(std::move(failure));
      all.complete = all.complete && swept->complete;
    }
    return all;
  }

  static std::unique_ptr<Session> session_;
};
std::unique_ptr<Session> Sweep::session_;

TEST_F(Sweep, HitsEachWriteOfTheRunOnce) {
  const Swept all = sweep({.kind = FaultKind::dropped_write});
  // Two saves of 4 x 3 shards and a manifest each, and the records of what the two attempts have seen.
  EXPECT_EQ(all.positions, 2 * (4 * 3 + 1) + 2);
  EXPECT_TRUE(all.complete);
  EXPECT_THAT(all.failures, IsEmpty());
  EXPECT_EQ(all.outcomes.at(SweepOutcome::saved_again), 2 * 13);
  EXPECT_EQ(all.outcomes.at(SweepOutcome::restarted), 2);
}

TEST_F(Sweep, GoesOnFromAPositionWhereTheFaultIsSticky) {
  const Swept all = sweep({.kind = FaultKind::no_space, .times = 0});
  EXPECT_TRUE(all.complete);
  EXPECT_THAT(all.failures, IsEmpty());
  EXPECT_GT(all.outcomes.at(SweepOutcome::restarted), 50) << "all tries of a publish fail";
}

TEST_F(Sweep, IsIncompleteWhereItsLimitCutsItShort) {
  const Swept all = sweep({.kind = FaultKind::dropped_write, .limit = 2});
  EXPECT_FALSE(all.complete);
  EXPECT_LT(all.positions, 28);
}

TEST_F(Sweep, FindsABrokenEngineAndSaysHowToSeeItAgain) {
  const Swept all = sweep({.kind = FaultKind::no_space}, "protocol_swallowed_write_error");
  ASSERT_FALSE(all.failures.empty());
  const SweepFailure& failure = all.failures.front();
  EXPECT_EQ(failure.verdict, RunVerdict::fail);
  EXPECT_FALSE(failure.property.empty());
  EXPECT_THAT(reproduce_line(failure.plan), HasSubstr("--set 'faults=[{\"kill\""));
  const Result<Trial> again = session_->trial(failure.plan);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->verdict, RunVerdict::fail);
  EXPECT_EQ(again->evidence, failure.evidence);
}

TEST_F(Sweep, LeavesOutTheScenariosOwnFaultsOfTheKind) {
  const Plan base = sweep_base(two_saves(), FaultKind::kill);
  EXPECT_THAT(base.faults, IsEmpty());
  EXPECT_EQ(base.recovery.budget, two_saves().recovery.budget + 1);
}

TEST_F(Sweep, HasAPlaceForEachVariantAndNoneThatCannotBe) {
  const Plan base = sweep_base(two_saves(), FaultKind::torn_write);
  std::set<std::string> places;
  for (const FaultSpec& group : sweep_groups(base, {.kind = FaultKind::torn_write}, 2)) {
    EXPECT_TRUE(places.insert(describe(group)).second) << describe(group);
    EXPECT_TRUE(group.at.phase == Phase::save || group.at.rank == 0) << describe(group);
  }
  // For each third and attempt: four ranks in two saves, and rank 0 in two commits and in the search.
  EXPECT_EQ(places.size(), 3U * 2 * (4 * 2 + 2 + 1));
}

TEST_F(Sweep, NamesWhatTheRunDoesAndNoGroupCanHit) {
  for (const FaultKind kind : {FaultKind::io_error, FaultKind::dropped_write, FaultKind::stale_listing}) {
    const SweepOptions options{.kind = kind};
    const Plan base = sweep_base(two_saves(), kind);
    std::vector<FaultSpec> groups = sweep_groups(base, options, 2);
    const auto missed = operations_missed(*session_, base, options, groups);
    ASSERT_TRUE(missed);
    EXPECT_THAT(*missed, IsEmpty());
  }
  // As if the table did not know that the coordinator retires, and had forgotten the first commit.
  const SweepOptions options{.kind = FaultKind::io_error};
  const Plan base = sweep_base(two_saves(), options.kind);
  std::vector<FaultSpec> groups = sweep_groups(base, options, 2);
  std::erase_if(groups, [](const FaultSpec& group) {
    return group.at.phase == Phase::retire || (group.at.phase == Phase::commit && group.at.step == 2);
  });
  const auto missed = operations_missed(*session_, base, options, groups);
  ASSERT_TRUE(missed);
  EXPECT_THAT(*missed, testing::Contains("rank 0, attempt 1, step 2, commit: rename"));
  EXPECT_THAT(*missed, testing::Contains(HasSubstr("retire: list")));
  EXPECT_THAT(*missed, testing::Not(testing::Contains(HasSubstr("step 4, commit"))));
}

TEST_F(Sweep, RefusesWhatNoSystemSurvives) {
  Plan plan = two_saves();
  plan.faults.push_back({.kind = FaultKind::lose_unsynced_data, .at = {.rank = 1, .step = 2, .phase = Phase::save}});
  const SweepOptions options{.kind = FaultKind::lying_sync};
  const Plan base = sweep_base(plan, options.kind);
  EXPECT_THAT(mistakes_in_sweep(base, sweep_groups(base, options, 2)), ElementsAre(HasSubstr("beyond any system")));
}

}  // namespace
}  // namespace firedrill
