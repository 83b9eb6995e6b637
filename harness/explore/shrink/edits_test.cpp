// Each edit makes a plan simpler in its own way, and however one follows them they come to an end.
#include "harness/explore/shrink/edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "harness/explore/shrink/test_plans.h"

namespace firedrill {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

template <class Read>
auto each(const std::vector<Plan>& plans, Read read) {
  std::vector<decltype(read(plans.front()))> values;
  for (const Plan& plan : plans) values.push_back(read(plan));
  return values;
}

Plan with_fault(FaultSpec fault) {
  Plan plan = quiet_nano();
  plan.faults = {std::move(fault)};
  return plan;
}

std::vector<std::string> kinds_in(const Plan& plan) {
  std::vector<std::string> kinds;
  for (const FaultSpec& fault : plan.faults) kinds.emplace_back(to_string(fault.kind));
  return kinds;
}

TEST(Edits, FaultsAreLeftOutAllTogetherByHalvesAndOneByOne) {
  Plan plan = quiet_nano();
  for (const FaultKind kind : {FaultKind::kill, FaultKind::hang, FaultKind::exit, FaultKind::slow})
    plan.faults.push_back({.kind = kind});
  EXPECT_THAT(each(fewer_faults(plan), kinds_in),
              ElementsAre(IsEmpty(), ElementsAre("exit", "slow"), ElementsAre("kill", "hang"),
                          ElementsAre("hang", "exit", "slow"), ElementsAre("kill", "exit", "slow"),
                          ElementsAre("kill", "hang", "slow"), ElementsAre("kill", "hang", "exit")));
  EXPECT_THAT(fewer_faults(quiet_nano()), IsEmpty());
}

TEST(Edits, FaultsBehindOneThatIsLeftOutMayComeAnAttemptEarlier) {
  Plan plan = quiet_nano();
  plan.faults = {{.at = {.attempt = 1}}, {.kind = FaultKind::hang, .at = {.attempt = 2}}};
  const auto attempts = each(fewer_faults(plan), [](const Plan& simpler) {
    return simpler.faults.empty() ? 0 : simpler.faults.front().at.attempt.value_or(0);
  });
  EXPECT_THAT(attempts, ElementsAre(0, 2, 1, 1));
}

TEST(Edits, AKindBecomesAKillAnErrorOrTheFirstOfItsFamily) {
  const auto simpler = [](FaultKind kind) {
    return each(simpler_kinds(with_fault({.kind = kind})), [](const Plan& plan) { return kinds_in(plan).front(); });
  };
  EXPECT_THAT(simpler(FaultKind::kill), IsEmpty());
  EXPECT_THAT(simpler(FaultKind::kill_node), ElementsAre("kill"));
  EXPECT_THAT(simpler(FaultKind::io_error), ElementsAre("kill"));
  EXPECT_THAT(simpler(FaultKind::no_space), ElementsAre("kill", "io_error"));
  EXPECT_THAT(simpler(FaultKind::misdirected_write), ElementsAre("kill", "io_error", "torn_write"));
  EXPECT_THAT(simpler(FaultKind::wrong_root), ElementsAre("kill", "reorder_calls"));
}

TEST(Edits, AnotherKindTakesNoOptionsOfTheFormerOne) {
  FaultSpec fault{.kind = FaultKind::kill_node, .at = {.rank = 2, .step = 4, .nth = 3}, .lose_unsynced_data = true};
  const FaultSpec kill = simpler_kinds(with_fault(fault)).front().faults.front();
  EXPECT_FALSE(kill.lose_unsynced_data);
  EXPECT_EQ(kill.at.rank, 2);
  EXPECT_EQ(kill.at.nth, 3);
}

TEST(Edits, AFaultMovesToTheLowestPlaceHalfWayOrOneLess) {
  const FaultSpec fault{.at = {.attempt = 3, .rank = 3, .step = 9, .nth = 5}};
  const std::vector<Plan> simpler = earlier_faults(with_fault(fault));
  const auto at = [&simpler](auto read) {
    return each(simpler, [&](const Plan& p) { return read(p.faults.front()); });
  };
  EXPECT_THAT(at([](const FaultSpec& f) { return f.at.attempt.value_or(0); }), AllOf(Contains(1), Contains(2)));
  EXPECT_THAT(at([](const FaultSpec& f) { return f.at.rank; }), AllOf(Contains(0), Contains(1), Contains(2)));
  EXPECT_THAT(at([](const FaultSpec& f) { return f.at.nth; }), AllOf(Contains(1), Contains(3), Contains(4)));
  // Also the first save, and the one before.
  EXPECT_THAT(at([](const FaultSpec& f) { return f.at.step.value_or(0); }),
              AllOf(Contains(1), Contains(2), Contains(5), Contains(7), Contains(8)));
  EXPECT_THAT(earlier_faults(with_fault({.at = {.step = 1}})), IsEmpty());
}

TEST(Edits, AFaultLosesItsOptionsOneByOne) {
  FaultSpec fault{.kind = FaultKind::kill_node, .at = {.path = "shards/*", .when = When::after}, .times = 3};
  fault.lose_unsynced_names = true;
  const std::vector<Plan> simpler = plainer_faults(with_fault(fault));
  EXPECT_THAT(simpler, SizeIs(4));
  EXPECT_THAT(plainer_faults(with_fault({.kind = FaultKind::kill_node})), IsEmpty());
}

TEST(Edits, AShorterRunKeepsItsFaultsInside) {
  const std::vector<Plan> shorter = fewer_steps(with_fault({.at = {.step = 6}}));
  EXPECT_THAT(each(shorter, [](const Plan& plan) { return plan.job.steps; }), ElementsAre(1, 6, 7, 8, 10, 11));
  for (const Plan& plan : shorter) EXPECT_LE(plan.faults.front().at.step, plan.job.steps);
}

TEST(Edits, FewerRanksKeepFaultsOnRanksThatThereAre) {
  const std::vector<Plan> fewer = fewer_ranks(with_fault({.at = {.rank = 3}}));
  EXPECT_THAT(each(fewer, [](const Plan& plan) { return to_string(plan.layout); }),
              AllOf(Contains("dp=1"), Contains("dp=2"), Not(Contains("dp=4"))));
  for (const Plan& plan : fewer) EXPECT_LT(plan.faults.front().at.rank, plan.layout.world_size());
}

TEST(Edits, AnotherLayoutOfRestartsGoesAwayOrBecomesTheOnlyOne) {
  Plan plan = quiet_nano();
  plan.recovery.layout = Layout{.dp = 2};
  const std::vector<Plan> simpler = fewer_ranks(plan);
  ASSERT_GE(simpler.size(), 2U);
  EXPECT_FALSE(simpler[0].recovery.layout);
  EXPECT_EQ(simpler[1].layout, (Layout{.dp = 2}));
  EXPECT_FALSE(simpler[1].recovery.layout);
}

TEST(Edits, ALayoutLosesWhatItHasBesideDegrees) {
  Plan plan = quiet_nano();
  plan.layout = {.dp = 4, .zero = 2, .bucket_bytes = 100, .guard = Guard::check, .replica_check = 3, .rerun = true};
  const std::vector<Plan> simpler = fewer_ranks(plan);
  const auto layouts = each(simpler, [](const Plan& p) { return p.layout; });
  Layout less = plan.layout;
  less.zero = 1;
  EXPECT_THAT(layouts, Contains(less));
  less = plan.layout;
  less.guard = Guard::off;
  EXPECT_THAT(layouts, Contains(less));
  less = plan.layout;
  less.replica_check = 0;
  EXPECT_THAT(layouts, Contains(less));
  less = plan.layout;
  less.rerun = false;
  EXPECT_THAT(layouts, Contains(less));
}

TEST(Edits, AJobLosesItsOptionsAllTogetherByHalvesAndOneByOne) {
  Plan plan = quiet_nano();
  plan.job.checkpoint.mode = PublishMode::async;
  plan.job.checkpoint.catalog = CatalogKind::rocksdb;
  const std::vector<Plan> simpler = plainer_job(plan);
  const auto is_plain = [](const Plan& p) {
    return p.job.checkpoint.mode == PublishMode::sync && p.job.checkpoint.catalog == CatalogKind::files;
  };
  EXPECT_TRUE(is_plain(simpler.front()));
  EXPECT_THAT(each(simpler, [](const Plan& p) { return p.job.model.dropout; }), Contains(0.0));
  EXPECT_THAT(each(simpler, [](const Plan& p) { return p.job.checkpoint.mode; }), Contains(PublishMode::async));
}

TEST(Edits, ARecoveryBecomesPlain) {
  Plan plan = with_fault({});
  plan.recovery = {.policy = RecoveryPolicy::spare, .budget = 5, .spares = 2, .backoff = {.initial = Duration{5}}};
  const std::vector<Plan> simpler = plainer_recovery(plan);
  EXPECT_EQ(simpler.front().recovery, (RecoverySpec{.budget = 1}));
  EXPECT_THAT(each(simpler, [](const Plan& p) { return p.recovery.policy; }), Contains(RecoveryPolicy::restart));
}

TEST(Edits, TheSeedTheWorldAndWhatMayNotFireBecomePlain) {
  Plan plan = with_fault({.may_not_fire = true});
  plan.seed = 77;
  plan.world = WorldKind::process;
  EXPECT_EQ(plain_seed(plan).front().seed, 1U);
  EXPECT_EQ(in_the_sim_world(plan).front().world, WorldKind::sim);
  EXPECT_FALSE(faults_that_must_fire(plan).front().faults.front().may_not_fire);
}

TEST(Edits, WhatIsNotLegalIsToldFromWhatIs) {
  EXPECT_THAT(mistakes_in(quiet_nano()), IsEmpty());
  Plan plan = quiet_nano();
  plan.layout.dp = 3;
  EXPECT_THAT(mistakes_in(plan), Contains(HasSubstr("layout.dp is 3")));
  EXPECT_THAT(mistakes_in(with_fault({.at = {.rank = 9}})), Not(IsEmpty()));
  Plan process = with_fault({.kind = FaultKind::kill_node});
  process.world = WorldKind::process;
  EXPECT_THAT(mistakes_in(process), Contains(HasSubstr("sim world only")));
  Plan beyond = with_fault({});
  beyond.recovery.budget = 0;
  EXPECT_THAT(mistakes_beyond_budget(beyond), Not(IsEmpty()));
}

// Random plans, whatever edits are followed from them.
TEST(Edits, ComeToAnEndHoweverOneFollowsThem) {
  EXPECT_TRUE(rc::check("edits end", [] {
    Plan plan = drawn_plan(*rc::gen::inRange<std::uint64_t>(1, 1'000'000));
    Rng rng(*rc::gen::inRange<std::uint64_t>(0, 1'000'000));
    int followed = 0;
    for (bool any = true; any; RC_ASSERT(++followed < 400)) {
      any = false;
      const std::size_t first = rng.below(edits().size());
      for (std::size_t i = 0; !any && i < edits().size(); ++i) {
        const std::vector<Plan> simpler = edits()[(first + i) % edits().size()].of(plan);
        any = !simpler.empty();
        if (any) plan = simpler[rng.below(simpler.size())];
      }
    }
    RC_ASSERT(plan.faults.empty());
    RC_ASSERT(plan.layout == Layout{});
  }));
}

}  // namespace
}  // namespace firedrill
