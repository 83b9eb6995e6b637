#include "harness/world/process_world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <map>

#include "engine/data/corpus.h"
#include "harness/scenario/scenario.h"
#include "harness/world/process_rank.h"
#include "harness/world/sim_world.h"
#include "harness/world/supervisor.h"

namespace firedrill {
namespace {

Plan quickstart() {
  Loaded<Scenario> loaded = load_scenario("scenarios/quickstart.yaml");
  FD_CHECK(static_cast<bool>(loaded), "{}", loaded.mistakes.empty() ? "" : loaded.mistakes.front());
  return make_plan(*loaded);
}

// Everything around one run of a plan, in either world.
class Drill {
 public:
  explicit Drill(Plan plan)
      : plan_(std::move(plan)),
        corpus_(must(load_corpus(plan_.job.data.corpus))),
        text_(split_corpus(corpus_, plan_.job.data.held_out).training),
        model_(plan_.job),
        sampler_(must(Sampler::make(plan_.job, text_.count()))),
        identity_(make_run_identity(plan_.job, plan_.layout, plan_.run_id, corpus_.digest, "numerics of the test")),
        prober_(std::make_unique<Protocol>(), plan_.job, identity_, tables_) {}

  Result<RunOutcome> in_processes(const ProcessOptions& options = {}) {
    FD_TRY(const std::unique_ptr<ProcessWorld> world, ProcessWorld::start(subject_, prober_, history_, options));
    return supervise(plan_, *world, world->observer(), history_);
  }
  Result<RunOutcome> simulated() {
    SimResources resources;
    SimWorld world(resources, subject_, prober_, history_, {.probes = false});
    return supervise(plan_, world, world.observer(), history_);
  }

  const History& history() const { return history_; }
  std::vector<Event> all(EventKind kind) const {
    std::vector<Event> events;
    for (const std::uint32_t i : history_.of(kind)) events.push_back(history_[i]);
    return events;
  }
  // The state digest that each rank last gave for each step.
  std::map<std::pair<std::int64_t, int>, std::string> states() const {
    std::map<std::pair<std::int64_t, int>, std::string> states;
    for (const Event& event : all(EventKind::step_done)) states[{event.step, event.rank}] = event.digest.hex();
    return states;
  }

 private:
  template <class T>
  static T must(Result<T> result) {
    FD_CHECK(result.ok(), "{}", describe(result.error()));
    return *std::move(result);
  }

  Plan plan_;
  Corpus corpus_;
  Value text_;
  Model model_;
  Sampler sampler_;
  RunIdentity identity_;
  Tables tables_;
  Prober prober_;
  History history_{tables_};
  Subject subject_{
      .plan = plan_, .model = model_, .sampler = sampler_, .text = text_, .identity = identity_, .protocol = [] {
        return std::make_unique<Protocol>();
      }};
};

TEST(ProcessWorld, EndsWithTheSameBitsAsTheSimWorldThroughThreeKills) {
  Drill processes(quickstart());
  const Result<RunOutcome> outcome = processes.in_processes();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_TRUE(outcome->finished) << outcome->why;
  EXPECT_EQ(outcome->attempts, 4);
  EXPECT_EQ(processes.all(EventKind::fault_fired).size(), 3U);

  Drill simulated(quickstart());
  ASSERT_TRUE(simulated.simulated());
  EXPECT_EQ(processes.states().size(), 48U);
  EXPECT_EQ(processes.states(), simulated.states());
}

TEST(ProcessWorld, AKilledRankIsNoticedAtOnceAndItsPeersEnd) {
  Plan plan = quickstart();
  plan.faults.resize(1);
  plan.recovery.budget = 0;
  Drill drill(plan);
  const Result<RunOutcome> outcome = drill.in_processes();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_FALSE(outcome->finished);
  const std::vector<Event> fired = drill.all(EventKind::fault_fired);
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_EQ(fired[0].rank, 2);
  EXPECT_EQ(fired[0].step, 3);
  EXPECT_EQ(fired[0].phase, Phase::backward);
  const std::vector<Event> ends = drill.all(EventKind::rank_ended);
  ASSERT_EQ(ends.size(), 4U);
  for (const Event& end : ends) {
    EXPECT_EQ(end.a, end.rank == 2 ? 2 : 1) << drill.history().text(end.name);
    EXPECT_LT(end.time - fired[0].time, std::chrono::seconds(end.rank == 2 ? 1 : 4));
    if (end.rank != 2) {
      EXPECT_EQ(drill.history().text(end.detail), "aborted");
    }
  }
}

TEST(ProcessWorld, TheHistoryIsInTheOrderOfTimeAndSpeaksOfTheDisk) {
  Plan plan = quickstart();
  plan.faults.clear();
  Drill drill(plan);
  const Result<RunOutcome> outcome = drill.in_processes();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  ASSERT_TRUE(outcome->finished) << outcome->why;
  Time last{0};
  for (const Event& event : drill.history().events()) {
    EXPECT_GE(event.time, last);
    last = event.time;
  }
  EXPECT_EQ(drill.all(EventKind::probe).size(), 1U) << "once all ranks are gone";
  EXPECT_GT(drill.all(EventKind::disk_changed).size(), 50U);
  EXPECT_EQ(drill.all(EventKind::validated).size(), 6U);
}

TEST(ProcessWorld, WhatRanksTellIsHeardOnceAndBeforeItsAttemptIsInTheHistory) {
  Drill drill(quickstart());
  std::map<EventKind, std::size_t> heard;
  bool early = true;
  const auto listen = [&](const Event& event) {
    ++heard[event.kind];
    early =
        early && (drill.history().of(EventKind::attempt_ended).size() + 1 == static_cast<std::size_t>(event.attempt));
  };
  ASSERT_TRUE(drill.in_processes({.heard = listen}).ok());
  EXPECT_TRUE(early);
  for (const EventKind kind : {EventKind::step_done, EventKind::fault_fired, EventKind::rank_ended,
                               EventKind::acknowledged, EventKind::restored}) {
    EXPECT_GT(heard[kind], 0U) << to_string(kind);
    EXPECT_EQ(heard[kind], drill.history().of(kind).size()) << to_string(kind);
  }
}

TEST(ProcessWorld, TellsInEachAttemptOfTheFirstMessageFromEachPeer) {
  Plan plan = quickstart();
  plan.faults.resize(1);
  Drill drill(plan);
  const Result<RunOutcome> outcome = drill.in_processes();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  ASSERT_EQ(outcome->attempts, 2) << outcome->why;
  std::map<std::array<std::int64_t, 3>, int> told;  // by attempt, rank and peer
  for (const Event& event : drill.all(EventKind::message_taken)) {
    EXPECT_EQ(event.b, event.attempt);
    ++told[{event.attempt, event.rank, event.a}];
  }
  for (int attempt = 1; attempt <= 2; ++attempt) {
    for (int rank = 0; rank < 4; ++rank) {
      for (int peer = 0; peer < 4; ++peer) EXPECT_EQ((told[{attempt, rank, peer}]), rank == peer ? 0 : 1);
    }
  }
}

TEST(ProcessWorld, AnInjectedErrorReachesTheJobAndNoRankDies) {
  Plan plan = quickstart();
  plan.faults = {FaultSpec{
      .kind = FaultKind::no_space, .at = {.rank = 1, .step = 2, .phase = Phase::save, .op = SeamOp::file}, .times = 0}};
  plan.recovery.budget = 0;
  Drill drill(plan);
  const Result<RunOutcome> outcome = drill.in_processes();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_FALSE(outcome->finished);
  for (const Event& end : drill.all(EventKind::rank_ended)) {
    EXPECT_EQ(end.a, 1);
    EXPECT_EQ(drill.history().text(end.detail), "no_space");
  }
}

TEST(ProcessWorld, RanksThatAreStuckWithoutAFaultAreEndedAndTheRunSaysSo) {
  Plan plan = quickstart();
  plan.faults.clear();
  plan.mutant = "sleeping";
  plan.job.cluster.deadline = std::chrono::seconds(1);
  Drill drill(plan);
  const Result<RunOutcome> outcome = drill.in_processes();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_FALSE(outcome->finished);
  EXPECT_TRUE(outcome->unprovoked);
  EXPECT_EQ(outcome->attempts, 1) << "another attempt would hang as well";
  EXPECT_NE(outcome->why.find("is stuck: it lives and has done nothing"), std::string::npos) << outcome->why;
}

// What a fault of rank 1 in its step 3 leads to, at the deadline of the figures: 2 s.
class RankFault {
 public:
  explicit RankFault(const FaultSpec& fault) : drill_(plan_with(fault)), outcome_(drill_.in_processes()) {}

  void expect_noticed_within(std::chrono::milliseconds bound, Suspicion suspicion) {
    ASSERT_TRUE(outcome_) << describe(outcome_.error());
    const std::vector<Event> suspected = drill_.all(EventKind::suspected);
    const std::vector<Event> fired = drill_.all(EventKind::fault_fired);
    ASSERT_EQ(suspected.size(), 1U) << outcome_->why;
    ASSERT_EQ(fired.size(), 1U);
    EXPECT_EQ(suspected[0].a, 1);
    EXPECT_EQ(static_cast<Suspicion>(suspected[0].b), suspicion);
    EXPECT_EQ(suspected[0].phase, fired[0].phase);
    EXPECT_EQ(suspected[0].step, fired[0].step);
    EXPECT_LE(suspected[0].time - fired[0].time, bound);
    expect_all_gone(suspected[0].time);
  }
  void expect_all_gone(Time noticed) const {
    const std::vector<Event> ends = drill_.all(EventKind::rank_ended);
    EXPECT_EQ(ends.size(), 4U);
    for (const Event& end : ends) EXPECT_LE(end.time - noticed, std::chrono::seconds(3)) << end.rank;
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left over";
  }
  const Drill& drill() const { return drill_; }
  const RunOutcome& outcome() const { return *outcome_; }

 private:
  static Plan plan_with(const FaultSpec& fault) {
    Plan plan = quickstart();
    plan.faults = {fault};
    plan.recovery.budget = 0;
    plan.job.cluster.deadline = std::chrono::seconds(2);
    plan.job.cluster.heartbeat = std::chrono::milliseconds(250);
    return plan;
  }

  Drill drill_;
  Result<RunOutcome> outcome_;
};

TEST(ProcessWorld, AStoppedRankIsNoticedWithinFiveSecondsWhileItsPeersWaitInACollective) {
  RankFault run({.kind = FaultKind::hang, .at = {.rank = 1, .step = 3, .phase = Phase::exchange}});
  run.expect_noticed_within(std::chrono::seconds(5), Suspicion::stopped);
}

TEST(ProcessWorld, AStuckRankIsToldFromAStoppedOne) {
  RankFault run({.kind = FaultKind::stall, .at = {.rank = 1, .step = 3, .phase = Phase::backward, .nth = 2}});
  run.expect_noticed_within(std::chrono::seconds(5), Suspicion::stuck);
}

TEST(ProcessWorld, AnExitWithCodeZeroInMidRunIsAFailureNoticedAtOnce) {
  const RankFault run({.kind = FaultKind::exit, .at = {.rank = 1, .step = 3, .phase = Phase::backward}, .code = 0});
  EXPECT_FALSE(run.outcome().finished);
  EXPECT_FALSE(run.outcome().check_failed);
  const std::vector<Event> ends = run.drill().all(EventKind::rank_ended);
  const auto own = std::ranges::find(ends, 1, &Event::rank);
  ASSERT_NE(own, ends.end());
  EXPECT_EQ(own->a, 1);
  EXPECT_LE(own->time - run.drill().all(EventKind::fault_fired).at(0).time, std::chrono::seconds(1));
  run.expect_all_gone(own->time);
}

TEST(ProcessWorld, PreemptedRanksAgreeOnOneStepAndTheNextAttemptResumesThere) {
  Plan plan = quickstart();
  plan.job.checkpoint.every = 8;
  plan.faults = {{.kind = FaultKind::preempt, .at = {.rank = 2, .step = 3, .phase = Phase::forward}},
                 {.kind = FaultKind::preempt, .at = {.rank = 0, .step = 3, .phase = Phase::backward, .nth = 3}}};
  Drill drill(plan);
  const Result<RunOutcome> outcome = drill.in_processes();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_TRUE(outcome->finished) << outcome->why;
  EXPECT_EQ(outcome->attempts, 2);
  const std::vector<Event> agreed = drill.all(EventKind::preempt_agreed);
  ASSERT_EQ(agreed.size(), 4U);
  for (const Event& event : agreed) EXPECT_EQ(event.a, agreed[0].a);
  for (const Event& event : drill.all(EventKind::restored)) EXPECT_EQ(event.step, agreed[0].a);
  std::map<std::int64_t, int> done;
  for (const Event& event : drill.all(EventKind::step_done)) ++done[event.step];
  for (const auto& [step, ranks] : done) EXPECT_EQ(ranks, 4) << "step " << step << " was trained twice or not by all";
}

TEST(ProcessWorld, WhenTheGraceTimeIsOverAPreemptedRankIsKilled) {
  Plan plan = quickstart();
  plan.job.cluster.grace = std::chrono::milliseconds(300);
  plan.faults = {{.kind = FaultKind::preempt, .at = {.rank = 2, .step = 3, .phase = Phase::forward}},
                 {.kind = FaultKind::slow,
                  .at = {.rank = 2, .step = 3, .phase = Phase::backward},
                  .times = 6,
                  .delay = std::chrono::milliseconds(100)}};
  Drill drill(plan);
  const Result<RunOutcome> outcome = drill.in_processes();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_TRUE(outcome->finished) << outcome->why;
  EXPECT_TRUE(drill.all(EventKind::preempt_agreed).empty());
  int killed = 0;
  for (const Event& end : drill.all(EventKind::rank_ended)) {
    if (end.attempt == 1 && end.a == 2) ++killed;
    if (end.attempt == 1 && end.rank == 2) {
      EXPECT_EQ(drill.history().text(end.name), "its grace time was over, and it was killed");
    }
  }
  EXPECT_EQ(killed, 1);
  for (const Event& event : drill.all(EventKind::restored)) EXPECT_EQ(event.step, 2) << "the older checkpoint";
}

TEST(ProcessWorld, LeavesNoProcessAndKeepsTheDiskItWasGiven) {
  std::string directory = (std::filesystem::temp_directory_path() / "firedrill-world-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  Plan plan = quickstart();
  plan.faults.clear();
  plan.job.steps = 2;
  Drill drill(plan);
  ASSERT_TRUE(drill.in_processes({.directory = directory}));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_TRUE(std::filesystem::exists(directory + "/disk/manifests"));
  std::filesystem::remove_all(directory);
}

TEST(RankAssignment, SurvivesItsWayToTheRank) {
  const RankAssignment sent{.plan = "{}",
                            .floor = 4,
                            .fired = {1, 0, 2},
                            .epoch = {.since_boot = std::chrono::nanoseconds(123)},
                            .store_port = 40123,
                            .disk = "/tmp/disk",
                            .corpus_digest = digest_of("corpus"),
                            .numerics_key = "key"};
  const std::string payload = to_payload(sent);
  const Result<RankAssignment> got = assignment_from(payload);
  ASSERT_TRUE(got);
  EXPECT_EQ(to_payload(*got), payload);
  EXPECT_EQ(got->fired, sent.fired);
  EXPECT_EQ(got->store_port, sent.store_port);
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(assignment_from(std::string_view(payload).substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace firedrill
