// What a rank does wrong is detected, named exactly, and never seen where it is not.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "harness/run/run.h"
#include "harness/scenario/scenario.h"

namespace firedrill {
namespace {

Plan plan_of(const std::string& name) {
  Loaded<Scenario> loaded = load_scenario("scenarios/rank/" + name + ".yaml", {.world = WorldKind::sim});
  FD_CHECK(static_cast<bool>(loaded), "{}", loaded.mistakes.empty() ? "" : loaded.mistakes.front());
  return make_plan(*loaded);
}

// Runs the plan, which must pass, and gives the suspicions of its history, each with the fault that fired before it.
std::vector<std::pair<Event, Event>> suspicions_of(Session& session, const Plan& plan) {
  const Result<Trial> trial = session.trial(plan);
  EXPECT_TRUE(trial) << describe(trial.error());
  EXPECT_EQ(trial->verdict, RunVerdict::pass) << trial->property << ": " << trial->evidence;
  std::vector<std::pair<Event, Event>> found;
  Event fired;
  for (const Event& event : session.history().events()) {
    if (event.kind == EventKind::fault_fired) fired = event;
    if (event.kind == EventKind::suspected) found.emplace_back(event, fired);
  }
  return found;
}

TEST(RankFaults, TheWatchdogNamesTheRankItsStepAndItsPhase) {
  Session session({});
  for (const auto& [name, suspicion, count] :
       {std::tuple("hang", Suspicion::stopped, 2U), std::tuple("stall", Suspicion::stuck, 2U),
        std::tuple("slow_beyond_bound", Suspicion::slow, 1U)}) {
    const auto found = suspicions_of(session, plan_of(name));
    EXPECT_EQ(found.size(), count) << name;
    for (const auto& [suspected, fired] : found) {
      EXPECT_EQ(suspected.a, fired.rank) << name;
      EXPECT_EQ(static_cast<Suspicion>(suspected.b), suspicion) << name;
      EXPECT_EQ(suspected.step, fired.step) << name;
      EXPECT_EQ(suspected.phase, fired.phase) << name;
    }
  }
}

TEST(RankFaults, APreemptionLosesNoStepAndTrainsNoneTwice) {
  Session session({});
  for (const char* name : {"preempt", "preempt_async"}) {
    const Plan plan = plan_of(name);
    EXPECT_TRUE(suspicions_of(session, plan).empty());
    std::map<std::int64_t, int> done;
    std::map<int, std::set<std::int64_t>> agreed;
    for (const Event& event : session.history().events()) {
      if (event.kind == EventKind::step_done) ++done[event.step];
      if (event.kind == EventKind::preempt_agreed) agreed[event.attempt].insert(event.a);
      if (event.kind == EventKind::restored) {
        EXPECT_EQ(agreed[event.attempt - 1], std::set{event.step}) << name;
      }
    }
    EXPECT_FALSE(agreed.empty());
    EXPECT_EQ(static_cast<int>(done.size()), plan.job.steps);
    for (const auto& [step, ranks] : done) EXPECT_EQ(ranks, 4) << name << ", step " << step;
  }
}

TEST(RankFaults, TheSameSeedGivesTheSameHistoryAlsoWhereTheWatchdogActs) {
  Session session({});
  for (const char* name : {"hang", "stall", "slow_beyond_bound", "preempt_short_grace"}) {
    const Plan plan = plan_of(name);
    const auto first = session.trial(plan, true);
    const auto second = session.trial(plan, true);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->history, second->history) << name;
  }
}

TEST(RankFaults, NoFalseAlarmInRunsWithRandomDelaysAndASlowRank) {
  Session session({});
  Plan plan = plan_of("slow_within_bound");
  for (plan.seed = 1; plan.seed <= 200; ++plan.seed) {
    const auto trial = session.trial(plan);
    ASSERT_TRUE(trial);
    ASSERT_EQ(trial->verdict, RunVerdict::pass) << "seed " << plan.seed << ": " << trial->evidence;
    ASSERT_TRUE(session.history().of(EventKind::suspected).empty()) << "seed " << plan.seed;
    ASSERT_EQ(session.history().of(EventKind::attempt_started).size(), 1U) << "seed " << plan.seed;
  }
}

}  // namespace
}  // namespace firedrill
