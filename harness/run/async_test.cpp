// Publishing beside training: everything that a publish in the training task survives, it survives too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/mutants/mutants.h"
#include "harness/run/hunt.h"
#include "harness/run/random_kills.h"
#include "harness/run/run.h"
#include "harness/run/test_runs.h"

namespace firedrill {
namespace {

Plan async_quick_start() {
  Plan plan = plan_of("scenarios/quickstart.yaml");
  plan.job.checkpoint.mode = PublishMode::async;
  return plan;
}

Plan quiet_async_nano() {
  Plan plan = async_quick_start();
  plan.faults.clear();
  return plan;
}

// Several steps pass while a save is written.
Plan slow_nano() {
  Plan plan = quiet_async_nano();
  plan.job.cluster.file_operation = std::chrono::milliseconds(2);
  plan.job.cluster.file_sync = std::chrono::milliseconds(4);
  return plan;
}

// The fault at the nth place of a phase of the publish of step 4, for every n until it no longer fires.
int everywhere(Session& session, Plan plan, FaultSpec fault, std::vector<Phase> phases) {
  int positions = 0;
  for (const Phase phase : phases) {
    for (int rank = 0; rank < 4; ++rank) {
      for (int nth = 1; nth < 500; ++nth) {
        fault.at.rank = rank;
        fault.at.step = 4;
        fault.at.phase = phase;
        fault.at.nth = nth;
        fault.may_not_fire = true;
        plan.faults = {fault};
        const Trial trial = must_run(session, plan);
        EXPECT_EQ(trial.verdict, RunVerdict::pass) << complaint(plan, trial);
        if (trial.faults_fired == 0) break;
        ++positions;
      }
    }
  }
  return positions;
}

const std::vector<Phase> publish_phases = {Phase::save, Phase::commit, Phase::validate, Phase::retire};

TEST(AsyncRun, TheQuickStartEndsEqualToTheGolden) {
  Session session({});
  const Result<RunReport> report = session.run(async_quick_start());
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_EQ(report->verdict, RunVerdict::pass) << report->reason;
  EXPECT_EQ(report->final_digest, report->golden_digest);
  EXPECT_EQ(report->fired.size(), 3U);
  for (const PropertyLine& property : report->properties) EXPECT_EQ(property.verdict, "pass") << property.name;
}

TEST(AsyncRun, AKillAtEverySeamCallOfOnePublishIsSurvived) {
  Session session({});
  int positions = 0;
  for (const When when : {When::before, When::after}) {
    positions +=
        everywhere(session, quiet_async_nano(), {.kind = FaultKind::kill, .at = {.when = when}}, publish_phases);
    FaultSpec node{.kind = FaultKind::kill_node, .at = {.when = when}};
    node.lose_unsynced_data = node.lose_unsynced_names = true;
    positions += everywhere(session, quiet_async_nano(), node, publish_phases);
  }
  EXPECT_GT(positions, 200);
}

TEST(AsyncRun, AnErrorOfTheDiskAtEveryCallOfOnePublishIsSurvived) {
  Session session({});
  Plan plan = quiet_async_nano();
  plan.recovery.budget = 2;
  for (const FaultKind kind : {FaultKind::io_error, FaultKind::no_space}) {
    int positions = 0;
    for (const When when : {When::before, When::after}) {
      // Once: another try follows. Three times: the publish fails, and the attempt with it.
      for (const int times : {1, 3}) {
        const FaultSpec fault{.kind = kind, .at = {.op = SeamOp::file, .when = when}, .times = times};
        positions += everywhere(session, plan, fault, publish_phases);
      }
    }
    EXPECT_GT(positions, 50) << to_string(kind);
  }
}

TEST(AsyncRun, FailuresThatTheJobAllowsAreSurvivedWithoutARestart) {
  Session session({});
  Plan plan = quiet_async_nano();
  plan.job.checkpoint.on_error = OnError::continue_training;
  plan.job.checkpoint.failures_max = 1;
  plan.recovery.budget = 0;
  const FaultSpec fault{.kind = FaultKind::io_error, .at = {.op = SeamOp::file}, .times = 3};
  EXPECT_GT(everywhere(session, plan, fault, {Phase::save, Phase::commit, Phase::validate}), 20);
}

TEST(AsyncRun, RandomKillsAreSurvivedOnFastAndSlowDisks) {
  Session session({});
  int fired = 0;
  for (const Plan& base : {quiet_async_nano(), slow_nano()}) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      const Plan plan = random_kills(base, seed);
      const Trial trial = must_run(session, plan);
      fired += trial.faults_fired;
      EXPECT_EQ(trial.verdict, RunVerdict::pass) << complaint(plan, trial);
    }
  }
  EXPECT_GT(fired, 300) << "most drawn kills must be reached";
}

TEST(AsyncRun, TheSameSeedGivesTheSameHistoryWithAndWithoutMemo) {
  Session with({});
  Session without({.memo = false});
  Plan plan = async_quick_start();
  std::set<Digest> distinct;
  for (plan.seed = 1; plan.seed <= 100; ++plan.seed) {
    const Trial first = must_run(with, plan, true);
    ASSERT_EQ(first.history, must_run(with, plan, true).history) << "seed " << plan.seed;
    ASSERT_EQ(first.verdict, RunVerdict::pass) << complaint(plan, first);
    distinct.insert(first.history);
    if (plan.seed > 2) continue;
    EXPECT_EQ(first.history, must_run(without, plan, true).history) << "seed " << plan.seed;
  }
  EXPECT_GT(distinct.size(), 95U) << "other seeds must give other interleavings";
}

// The first event of rank 1 of this kind and step.
const Event* find(const History& history, EventKind kind, std::int64_t step) {
  for (const std::uint32_t position : history.of(kind)) {
    const Event& event = history[position];
    if (event.rank == 1 && event.step == step) return &event;
  }
  return nullptr;
}

TEST(AsyncRun, StepsPassWhileASaveIsWrittenAndTheNextSaveWaitsForIt) {
  Session session({});
  ASSERT_EQ(must_run(session, slow_nano()).verdict, RunVerdict::pass);
  const History& history = session.history();
  const Event* dispatched = find(history, EventKind::save_dispatched, 4);
  const Event* acknowledged = find(history, EventKind::acknowledged, 4);
  const Event* trained = find(history, EventKind::step_done, 6);
  const Event* next = find(history, EventKind::save_dispatched, 6);
  ASSERT_TRUE(dispatched && acknowledged && trained && next);
  EXPECT_LT(dispatched->time, trained->time);
  EXPECT_LT(trained->time, acknowledged->time) << "two more steps are done before the save is";
  EXPECT_LE(acknowledged->time, next->time) << "the next save waits";
  EXPECT_EQ(find(history, EventKind::step_done, 4)->digest, acknowledged->digest) << "the state of the dispatch";
  EXPECT_EQ(acknowledged->phase, Phase::none);
  EXPECT_EQ(history.of(EventKind::save_dispatched).size(), 24U) << "six saves of four ranks";
}

TEST(AsyncRun, AnErrorEndsEveryRankWithinTheStepAfterIt) {
  Session session({});
  Plan plan = slow_nano();
  plan.faults = {FaultSpec{
      .kind = FaultKind::no_space, .at = {.rank = 2, .step = 2, .phase = Phase::save, .op = SeamOp::file}, .times = 0}};
  plan.recovery.budget = 0;
  plan.expect.kind = Expectation::Kind::liveness;
  EXPECT_EQ(must_run(session, plan).verdict, RunVerdict::liveness);
  const History& history = session.history();
  const Event* failed = find(history, EventKind::save_failed, 2);
  ASSERT_TRUE(failed);
  int out_of_space = 0;
  for (const std::uint32_t position : history.of(EventKind::rank_ended)) {
    const Event& end = history[position];
    EXPECT_EQ(end.a, 1);
    EXPECT_LE(end.step, 4) << "no rank trains on behind the next save";
    if (history.text(end.detail) == "no_space") ++out_of_space;
  }
  EXPECT_GT(out_of_space, 0);
}

TEST(AsyncRun, RealProcessesWithDrawnKillsEndEqualToTheGolden) {
  EXPECT_GE(survive_drawn_kills_of_processes(quiet_async_nano(), 10), 7U) << "most drawn kills must be reached";
}

}  // namespace
}  // namespace firedrill
