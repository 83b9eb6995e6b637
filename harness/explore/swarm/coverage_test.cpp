#include "harness/explore/swarm/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/explore/swarm/test_base.h"

namespace firedrill {
namespace {

class CoverageOfRuns : public testing::Test {
 protected:
  Sighting must_see(const Plan& plan) {
    const Result<Trial> trial = session_.trial(plan);
    FD_CHECK(static_cast<bool>(trial), "{}", describe(trial.error()));
    return sighting_of(Case(session_.history(), plan));
  }
  bool came_about(const Plan& plan, std::string_view name) {
    const auto found = std::ranges::find(situations(), name, &Situation::name);
    FD_CHECK(found != situations().end(), "there is no situation {}", name);
    return must_see(plan).situations[static_cast<std::size_t>(found - situations().begin())];
  }

  static Plan with(std::vector<FaultSpec> faults) {
    Plan plan = nano_base();
    plan.faults = std::move(faults);
    plan.recovery.budget = static_cast<int>(plan.faults.size());
    return plan;
  }
  static FaultSpec kill(int attempt, int rank, std::optional<std::int64_t> step, Phase phase) {
    return {.kind = FaultKind::kill, .at = {.attempt = attempt, .rank = rank, .step = step, .phase = phase}};
  }

  Session session_{{.golden_directory = "golden", .probes = false}};
};

TEST_F(CoverageOfRuns, AnotherScheduleIsNoOtherHistoryAndAnotherKillIs) {
  Plan plan = with({kill(1, 2, 5, Phase::backward)});
  const Digest states = must_see(plan).states;
  const Digest history = session_.history().digest();
  plan.seed = 99;
  EXPECT_EQ(must_see(plan).states, states);
  EXPECT_NE(session_.history().digest(), history) << "the schedule was to be another one";
  plan.faults.front().at.step = 6;
  EXPECT_NE(must_see(plan).states, states);
}

TEST_F(CoverageOfRuns, SituationsAreToldApart) {
  const Plan quiet = with({});
  const Plan in_step = with({kill(1, 2, 5, Phase::backward)});
  const Plan in_find = with({kill(1, 2, 5, Phase::backward), kill(2, 1, {}, Phase::find)});
  EXPECT_TRUE(must_see(quiet).situations.none());
  EXPECT_FALSE(came_about(in_step, "a_recovery_dies"));
  EXPECT_TRUE(came_about(in_find, "a_recovery_dies"));
  EXPECT_FALSE(came_about(in_find, "two_recoveries_die"));
  EXPECT_TRUE(came_about(with({kill(1, 0, 1, Phase::forward)}), "training_begins_again"));
  EXPECT_FALSE(came_about(in_step, "training_begins_again"));
  EXPECT_TRUE(came_about(with({kill(1, 0, 4, Phase::commit)}), "death_of_the_coordinator_in_a_commit"));
  Plan given_up = in_step;
  given_up.recovery.budget = 0;
  EXPECT_TRUE(came_about(given_up, "the_restart_budget_is_spent"));
  Plan elastic = in_step;
  elastic.recovery.layout = Layout{.dp = 2};
  EXPECT_TRUE(came_about(elastic, "resumed_under_another_layout"));
  EXPECT_FALSE(came_about(in_step, "resumed_under_another_layout"));
}

TEST_F(CoverageOfRuns, ATryThatFailsAndADamagedCheckpointAreSeen) {
  FaultSpec error{.kind = FaultKind::io_error,
                  .at = {.rank = 1, .step = 4, .phase = Phase::save, .file_op = FileOp::write}};
  EXPECT_TRUE(came_about(with({error}), "a_try_fails_and_the_next_succeeds"));
  FaultSpec flip{.kind = FaultKind::bit_flip_at_rest, .at = {.attempt = 2, .rank = 1, .phase = Phase::find}};
  const Plan damaged = with({kill(1, 2, 7, Phase::backward), flip});
  EXPECT_TRUE(came_about(damaged, "recovery_steps_back"));
  EXPECT_TRUE(came_about(damaged, "the_floor_is_lowered"));
}

TEST_F(CoverageOfRuns, OnlyTheFirstRunOfAKindIsNewsAlsoForALaterExploration) {
  const Sighting sighting = must_see(with({kill(1, 2, 5, Phase::backward)}));
  Coverage coverage;
  EXPECT_TRUE(coverage.add(sighting));
  EXPECT_FALSE(coverage.add(sighting));
  EXPECT_EQ(coverage.distinct_histories(), 1U);
  EXPECT_THAT(coverage.features(), testing::Contains("reach kill backward 0"));
  Coverage later;
  later.load(coverage.features());
  EXPECT_EQ(later.features(), coverage.features());
  EXPECT_FALSE(later.add(sighting));
}

TEST(CoverageTable, HoldsEachKindInThePhasesThatHaveItsOperations) {
  const std::set<Reach> all = reachable(weights_of({}, WorldKind::sim), CatalogKind::files);
  EXPECT_TRUE(all.contains({FaultKind::io_error, Phase::commit, 1 + static_cast<int>(FileOp::rename)}));
  EXPECT_FALSE(all.contains({FaultKind::io_error, Phase::forward, 1 + static_cast<int>(FileOp::rename)}));
  EXPECT_TRUE(all.contains({FaultKind::kill, Phase::forward, 0}));
  EXPECT_EQ(to_string(Reach{FaultKind::io_error, Phase::commit, 1 + static_cast<int>(FileOp::rename)}),
            "io_error in commit at rename");
}

TEST(SituationTable, IsInTheOrderOfItsNames) {
  EXPECT_TRUE(std::ranges::is_sorted(situations(), {}, &Situation::name));
  EXPECT_GE(situations().size(), 15U);
}

}  // namespace
}  // namespace firedrill
