#include "harness/explore/swarm/swarm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/check.h"
#include "engine/job/without_checks.h"
#include "faults/budget.h"
#include "harness/explore/swarm/test_base.h"

namespace firedrill {
namespace {

Drawn must_draw(Swarm& swarm, Session& session, std::uint64_t seed) {
  Result<Drawn> drawn = swarm.draw(session, seed);
  FD_CHECK(static_cast<bool>(drawn), "{}", describe(drawn.error()));
  return *std::move(drawn);
}

TEST(Swarm, TheSameSeedDrawsTheSamePlanAndAnotherSeedAnotherOne) {
  Session session({.golden_directory = "golden"});
  Swarm first(nano_base());
  Swarm second(nano_base());
  std::set<std::string> plans;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string plan = to_json(must_draw(first, session, seed).plan);
    EXPECT_EQ(plan, to_json(must_draw(second, session, seed).plan)) << seed;
    plans.insert(plan);
  }
  EXPECT_EQ(plans.size(), 20U);
}

TEST(Swarm, APlanWithinItsBudgetIsOneThatASystemCanSurviveAndOneBeyondItIsNot) {
  Session session({.golden_directory = "golden"});
  Swarm swarm(nano_base());
  std::set<std::string> layouts;
  int beyond = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Drawn drawn = must_draw(swarm, session, seed);
    const Plan& plan = drawn.plan;
    beyond += drawn.beyond_budget ? 1 : 0;
    EXPECT_THAT(plan.faults.size(), testing::AllOf(testing::Ge(1U), testing::Le(3U)));
    EXPECT_EQ(drawn.beyond_budget, !beyond_budget(plan).empty()) << seed;
    EXPECT_THAT(mistakes_in(plan.layout, plan.job), testing::IsEmpty());
    EXPECT_THAT(mistakes_in_cover(plan.faults, plan.layout), testing::IsEmpty()) << "damage that nothing notices";
    layouts.insert(to_string(without_checks(plan.layout)));
  }
  EXPECT_GT(beyond, 0);
  EXPECT_GT(layouts.size(), 4U);
}

TEST(Swarm, MostFaultsAreDrawnWhereTheyFire) {
  Session session({.golden_directory = "golden", .probes = false});
  Swarm swarm(nano_base(), {.beyond_budget = false});
  std::size_t planned = 0;
  int fired = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Drawn drawn = must_draw(swarm, session, seed);
    const Result<Trial> trial = session.trial(drawn.plan);
    ASSERT_TRUE(trial) << describe(trial.error());
    planned += drawn.plan.faults.size();
    fired += trial->faults_fired;
  }
  EXPECT_GT(fired, static_cast<int>(planned * 3 / 4)) << "of " << planned;
}

TEST(Swarm, AMutationDiffersFromItsParentAndStaysWithinTheBudget) {
  Session session({.golden_directory = "golden"});
  Swarm swarm(nano_base(), {.beyond_budget = false});
  const Plan parent = must_draw(swarm, session, 3).plan;
  int different = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Result<Drawn> mutated = swarm.mutate(session, parent, seed);
    ASSERT_TRUE(mutated) << describe(mutated.error());
    EXPECT_THAT(beyond_budget(mutated->plan), testing::IsEmpty());
    different += to_json(mutated->plan) != to_json(parent) ? 1 : 0;
  }
  EXPECT_GT(different, 12) << "an edit may come back to what was";
}

TEST(Swarm, AKindOfWeightZeroIsNeverDrawn) {
  Session session({.golden_directory = "golden"});
  Swarm swarm(nano_base(), {.weights = only_kinds({FaultKind::kill, FaultKind::io_error}), .beyond_budget = false});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const FaultSpec& fault : must_draw(swarm, session, seed).plan.faults) {
      EXPECT_TRUE(fault.kind == FaultKind::kill || fault.kind == FaultKind::io_error) << describe(fault);
    }
  }
}

TEST(Swarm, TheProcessWorldIsGivenOnlyKindsThatItHas) {
  const KindWeights weights = weights_of({}, WorldKind::process);
  for (const FaultKindInfo& info : fault_kinds()) {
    if (info.in_process_world) continue;
    EXPECT_EQ(weights[static_cast<std::size_t>(info.kind)], 0U) << info.name;
  }
}

TEST(Swarm, VariantsAreJobsThatCanRunAndHaveAtMostTwoSetsOfBits) {
  const std::vector<Job> variants = job_variants(nano_base().job, 8, 5);
  std::set<Digest> bits;
  for (const Job& job : variants) {
    EXPECT_THAT(mistakes_in(job), testing::IsEmpty());
    bits.insert(digest_of_job(job));
  }
  EXPECT_EQ(variants.size(), 8U);
  EXPECT_LE(bits.size(), 2U);
}

}  // namespace
}  // namespace firedrill
