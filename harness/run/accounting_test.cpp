// What the accounts of a run say in virtual time, and that keeping them changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/model/transformer.h"
#include "harness/run/test_runs.h"

namespace firedrill {
namespace {

using testing::Contains;
using testing::Field;
using testing::SizeIs;

bool of_accounts(const Event& event) {
  return event.kind == EventKind::time_spent || event.kind == EventKind::exchanged;
}

// All but the accounts, in order. Names are numbers of the session's one table.
std::vector<Event> others(const History& history) {
  std::vector<Event> events;
  for (const Event& event : history.events()) {
    if (!of_accounts(event)) events.push_back(event);
  }
  return events;
}

// Equal in every field, time included.
bool alike(const Event& a, const Event& b) {
  return a.kind == b.kind && a.phase == b.phase && a.rank == b.rank && a.attempt == b.attempt && a.step == b.step &&
         a.a == b.a && a.b == b.b && a.c == b.c && a.name == b.name && a.detail == b.detail && a.digest == b.digest &&
         a.time == b.time;
}

TEST(Accounting, ChangesNoEventNoTimeAndNoFaultPosition) {
  Session session({});
  for (const PublishMode mode : {PublishMode::sync, PublishMode::async}) {
    Plan plan = plan_of("scenarios/quickstart.yaml");
    plan.job.checkpoint.mode = mode;
    must_run(session, plan);
    const std::vector<Event> without = others(session.history());
    ASSERT_EQ(without.size(), session.history().size());
    plan.accounting = true;
    const Trial trial = must_run(session, plan, true);
    EXPECT_EQ(trial.verdict, RunVerdict::pass) << complaint(plan, trial);
    const std::vector<Event> with = others(session.history());
    EXPECT_LT(with.size(), session.history().size());
    ASSERT_EQ(with.size(), without.size());
    for (std::size_t i = 0; i < with.size(); ++i) ASSERT_TRUE(alike(with[i], without[i])) << "event " << i;
    EXPECT_EQ(must_run(session, plan, true).history, trial.history);
  }
}

TEST(Accounting, TheTimesOfARanksPhasesAreItsWholeLife) {
  Session session({});
  Plan plan = quiet_nano();
  plan.accounting = true;
  must_run(session, plan);
  const History& history = session.history();
  const Accounting account = account_of(history, plan);
  ASSERT_THAT(account.ranks, SizeIs(4));
  for (const std::uint32_t i : history.of(EventKind::rank_ended)) {
    const Event& ended = history[i];
    const RankIdle& rank = account.ranks[static_cast<std::size_t>(ended.rank)];
    EXPECT_EQ(rank.time, ended.time.count()) << "rank " << ended.rank;
    EXPECT_GT(rank.idle, 0);
    EXPECT_LT(rank.idle, rank.time);
  }
  std::set<std::string> phases;
  for (const SpentLine& line : account.phases) phases.insert(line.what);
  for (const char* phase : {"input", "forward", "backward", "exchange", "optimizer", "save", "commit", "validate",
                            "retire", "find", "rendezvous", "other"}) {
    // Drawing samples costs no virtual time.
    EXPECT_EQ(phases.count(phase), std::string(phase) == "input" ? 0U : 1U) << phase;
  }
  EXPECT_THAT(account.exchanges, Contains(Field(&ExchangedLine::group, "dp")));
  EXPECT_FALSE(account.bubble);
}

TEST(Accounting, TheBytesOfAnExchangeAreWhatItsRanksSend) {
  Session session({});
  Plan plan = quiet_nano();
  plan.job.checkpoint.every = 0;
  plan.accounting = true;
  must_run(session, plan);
  std::int64_t gradients = 4;  // the loss
  const Model model(plan.job);
  for (const Segment& segment : model.segments()) gradients += segment.count * 4;
  for (const ExchangedLine& line : account_of(session.history(), plan).exchanges) {
    if (line.group != "dp" || line.operation != "all_reduce") continue;
    EXPECT_EQ(line.calls, 4 * plan.job.steps);
    EXPECT_EQ(line.bytes, 6 * gradients * plan.job.steps);  // three parts to the owner, and three sums back
    EXPECT_EQ(line.bytes_of_rank.max, 3 * gradients);       // of the owner
    return;
  }
  FAIL() << "no gradients were exchanged";
}

TEST(Accounting, ARankWithASlowDiskIsNamedTheSlowest) {
  Session session({});
  Plan plan = quiet_nano();
  plan.accounting = true;
  FaultSpec slow{.kind = FaultKind::slow_disk, .at = {.rank = 2, .step = 4, .phase = Phase::save}};
  slow.delay = std::chrono::milliseconds(160);
  plan.faults = {slow};
  must_run(session, plan);
  const Accounting account = account_of(session.history(), plan);
  EXPECT_EQ(account.slowest_rank, 2);
  for (const SpentLine& line : account.phases) {
    if (line.what != "save") continue;
    EXPECT_GE(line.time.max, 160'000'000);
    EXPECT_EQ(line.time.max_step, 4);
    EXPECT_GT(line.time.max, 4 * line.time.p50);
  }
}

// Stages that take equally long and links that take no time.
Plan balanced(int pp, PipelineSchedule schedule, int virtual_stages) {
  Plan plan = plan_of("scenarios/rank/elastic_fewer_ranks.yaml");
  plan.faults.clear();
  plan.recovery.layout.reset();
  plan.job.lanes = {.dp = 1, .tp = 1, .cp = 1};
  plan.job.model.layers = 8;
  plan.job.batch.accumulation = 8;
  plan.job.steps = 2;
  plan.job.checkpoint.every = 0;
  Cluster& cluster = plan.job.cluster;
  cluster.latency_in_node = cluster.latency_between_nodes = cluster.message = Duration{0};
  cluster.bandwidth_in_node = cluster.bandwidth_between_nodes = 0;  // takes no time
  cluster.reduce = Duration{0};
  cluster.forward = std::chrono::microseconds(70);
  cluster.backward = std::chrono::microseconds(130);
  cluster.embed = cluster.head = {.forward = Duration{0}, .backward = Duration{0}};
  plan.run_id = run_id_of(plan.job);
  plan.seed = 0;  // no cost is drawn
  plan.layout = {.pp = pp, .schedule = schedule, .virtual_stages = virtual_stages};
  plan.accounting = true;
  return plan;
}

TEST(Bubble, OfBalancedStagesIsTheFormulas) {
  Session session({});
  const auto expect = [&session](const Plan& plan, double formula) {
    const Trial trial = must_run(session, plan);
    ASSERT_EQ(trial.verdict, RunVerdict::pass) << complaint(plan, trial);
    const Accounting account = account_of(session.history(), plan);
    ASSERT_TRUE(account.bubble);
    EXPECT_EQ(account.bubble->samples, 2);
    EXPECT_NEAR(account.bubble->p50, formula, 1e-12) << to_string(plan.layout);
    EXPECT_NEAR(account.bubble->max, formula, 1e-12) << to_string(plan.layout);
  };
  constexpr double m = 8;
  for (const int pp : {2, 4}) {
    const double others = pp - 1;
    expect(balanced(pp, PipelineSchedule::gpipe, 1), others / (m + others));
    expect(balanced(pp, PipelineSchedule::one_f_one_b, 1), others / (m + others));
    expect(balanced(pp, PipelineSchedule::interleaved, 2), others / (2 * m + others));
  }
}

TEST(Bubble, GrowsWhereOneStageIsSlower) {
  Session session({});
  Plan plan = balanced(4, PipelineSchedule::one_f_one_b, 1);
  plan.job.cluster.head = {.forward = std::chrono::microseconds(300), .backward = std::chrono::microseconds(300)};
  must_run(session, plan);
  EXPECT_GT(account_of(session.history(), plan).bubble->p50, 3.0 / 11.0 + 0.1);
}

// When the last rank has completed the last step.
Time time_of_training(const History& history) {
  Time last{0};
  for (const std::uint32_t i : history.of(EventKind::step_done)) last = std::max(last, history[i].time);
  return last;
}

TEST(Buckets, ThatAreExchangedWhileBackwardGoesOnSaveTimeOnSlowLinks) {
  Session session({});
  Plan plan = plan_of("scenarios/rank/elastic_fewer_ranks.yaml");
  plan.faults.clear();
  plan.recovery.layout.reset();
  plan.job.lanes = {.dp = 4, .tp = 1, .cp = 1};
  plan.job.steps = 4;
  plan.job.checkpoint.every = 0;
  plan.job.cluster.ranks_per_node = 1;
  plan.job.cluster.bandwidth_between_nodes = 20e6;  // a layer's gradients take longer than its backward
  plan.run_id = run_id_of(plan.job);
  plan.seed = 0;  // no cost is drawn
  plan.layout = {.dp = 4};
  for (const int zero : {0, 2}) {
    plan.layout.zero = zero;
    std::map<std::int64_t, Time> by_bucket;
    for (const std::int64_t bucket : {0, 1, 20'000}) {
      plan.layout.bucket_bytes = bucket;
      const Trial trial = must_run(session, plan);
      EXPECT_EQ(trial.verdict, RunVerdict::pass) << complaint(plan, trial);  // equal to the golden, so to each other
      by_bucket[bucket] = time_of_training(session.history());
    }
    EXPECT_LT(by_bucket[1], by_bucket[0] * 9 / 10) << "zero " << zero;
    EXPECT_LT(by_bucket[20'000], by_bucket[0] * 9 / 10) << "zero " << zero;
  }
}

TEST(Groups, OfAThousandRanksAreFormedAndNothingIsTrained) {
  Session session({});
  Plan plan = plan_of("scenarios/scale/thousand_ranks.yaml");
  EXPECT_EQ(plan.layout.world_size(), 1024);
  EXPECT_EQ(plan.job.steps, 0);
  plan.job.lanes = {.dp = 4, .tp = 4, .cp = 2};  // the same with fewer ranks
  plan.layout = {.dp = 4, .tp = 2, .pp = 2, .cp = 2};
  plan.accounting = true;
  const Result<RunReport> report = session.run(plan);
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_EQ(report->verdict, RunVerdict::pass) << report->reason;
  EXPECT_TRUE(session.history().of(EventKind::step_done).empty());
  std::map<std::string, std::int64_t> barriers;
  for (const ExchangedLine& line : report->accounting.exchanges) {
    if (line.operation == "barrier") barriers[line.group] = line.calls;
  }
  EXPECT_GE(barriers.size(), 8U);
  for (const auto& [group, calls] : barriers) EXPECT_EQ(calls, 32) << group;
}

}  // namespace
}  // namespace firedrill
