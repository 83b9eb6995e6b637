// The guard and the faults of calls, messages and links, in whole runs: each is survived, and the report names whom it
// hit; nobody is left waiting; and without a fault a guard changes nothing and blames nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "harness/run/test_runs.h"

namespace firedrill {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

struct Expected {
  const char* scenario;
  const char* kind;  // "": no attempt fails
  std::vector<int> ranks;
  std::int64_t sequence;
  std::int64_t step;
  const char* phase;
};

class CollectiveScenario : public testing::TestWithParam<Expected> {};

// When the fault fired, and when its attempt had ended.
std::pair<Time, Time> span_of(const History& history) {
  const Event& fired = history[history.of(EventKind::fault_fired).front()];
  for (const std::uint32_t position : history.of(EventKind::attempt_ended)) {
    if (history[position].attempt == fired.attempt) return {fired.time, history[position].time};
  }
  return {fired.time, Time::max()};
}

TEST_P(CollectiveScenario, IsSurvivedAndNamesWhomItHit) {
  const Expected& expected = GetParam();
  const Plan plan = plan_of(std::string("scenarios/collective/") + expected.scenario + ".yaml");
  Session session({});
  const Result<RunReport> report = session.run(plan);
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_EQ(report->verdict, RunVerdict::pass) << report->reason;
  EXPECT_EQ(report->final_digest, report->golden_digest);
  EXPECT_EQ(report->fired.size(), 1U);
  if (std::string_view(expected.kind).empty()) {
    EXPECT_THAT(report->attribution, IsEmpty());
    EXPECT_EQ(report->attempts.size(), 1U) << "it is harmless";
    return;
  }
  ASSERT_EQ(report->attribution.size(), 1U);
  const AttributionLine& blame = report->attribution.front();
  EXPECT_EQ(blame.kind, expected.kind) << blame.text;
  EXPECT_EQ(blame.ranks, expected.ranks) << blame.text;
  EXPECT_EQ(blame.sequence, expected.sequence) << blame.text;
  EXPECT_EQ(blame.step, expected.step) << blame.text;
  EXPECT_EQ(blame.phase, expected.phase) << blame.text;
  const auto [fired, ended] = span_of(session.history());
  EXPECT_LE(ended - fired, 2 * Time(plan.job.cluster.deadline)) << "every wait has a deadline";
}

INSTANTIATE_TEST_SUITE_P(All, CollectiveScenario,
                         testing::Values(Expected{"skip_call", "mismatch", {2}, 4, 5, "exchange"},
                                         Expected{"duplicate_call", "mismatch", {2}, 5, 5, "exchange"},
                                         Expected{"wrong_count", "mismatch", {2}, 4, 5, "exchange"},
                                         Expected{"wrong_dtype", "mismatch", {2}, 4, 5, "exchange"},
                                         Expected{"wrong_reduce_op", "mismatch", {2}, 4, 5, "exchange"},
                                         Expected{"wrong_root", "mismatch", {1}, 10, 4, "checkpoint"},
                                         Expected{"reorder_calls", "mismatch", {2}, 20, 5, "exchange"},
                                         Expected{"early_abort", "missing", {2}, 4, 5, "exchange"},
                                         Expected{"drop_message", "link", {0, 2}, 4, 5, "exchange"},
                                         Expected{"late_message", "link", {0, 2}, 4, 5, "exchange"},
                                         Expected{"partition", "link", {0, 2}, 4, 5, "exchange"},
                                         Expected{"partition_one_way", "link", {0, 2}, 4, 5, "exchange"},
                                         Expected{"delay_message", "", {}, 0, 0, ""},
                                         Expected{"duplicate_message", "", {}, 0, 0, ""},
                                         Expected{"slow_link", "", {}, 0, 0, ""},
                                         Expected{"flaky_link", "", {}, 0, 0, ""}),
                         [](const auto& subject) { return std::string(subject.param.scenario); });

const PropertyLine& line_of(const RunReport& report, std::string_view property) {
  return *std::ranges::find(report.properties, property, &PropertyLine::name);
}

TEST(Guard, ChangesNothingAndBlamesNobodyInAnyKindOfLayout) {
  Session session({.probes = false});
  Plan plan = plan_of("scenarios/quickstart.yaml");
  plan.faults.clear();
  Loaded<Job> hybrid = load_job("scenarios/jobs/nano-hybrid.yaml");
  ASSERT_TRUE(hybrid);
  plan.job = *hybrid;
  plan.job.steps = 4;
  plan.run_id = run_id_of(plan.job);
  for (Layout layout :
       {Layout{.dp = 4}, Layout{.dp = 2, .pp = 2}, Layout{.dp = 2, .zero = 2},
        Layout{.tp = 2, .cp = 2, .sequence_parallel = true}, Layout{.dp = 2, .tp = 2, .pp = 2, .bucket_bytes = 1}}) {
    for (const Guard guard : {Guard::record, Guard::check}) {
      layout.guard = guard;
      plan.layout = layout;
      const Result<RunReport> report = session.run(plan);
      ASSERT_TRUE(report) << describe(report.error());
      EXPECT_EQ(report->verdict, RunVerdict::pass) << to_string(layout) << ": " << report->reason;
      EXPECT_GT(line_of(*report, "collectives_agree").checked, 0) << to_string(layout);
      EXPECT_THAT(report->attribution, IsEmpty());
    }
  }
}

TEST(Guard, NamesARankThatWasKilled) {
  Plan plan = plan_of("scenarios/rank/kill_in_step.yaml");
  plan.layout.guard = Guard::record;
  Session session({.probes = false});
  const Result<RunReport> report = session.run(plan);
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_EQ(report->verdict, RunVerdict::pass) << report->reason;
  ASSERT_EQ(report->attribution.size(), 2U);
  EXPECT_EQ(report->attribution[0].kind, "dead");
  EXPECT_EQ(report->attribution[0].ranks, std::vector<int>{3});
  EXPECT_EQ(report->attribution[0].phase, "forward");
  EXPECT_EQ(report->attribution[1].ranks, std::vector<int>{1});
  EXPECT_EQ(line_of(*report, "failures_are_attributed").checked, 2);
}

TEST(Guard, WithoutItASkippedCallIsFoundByNobodyButTheResult) {
  Plan plan = plan_of("scenarios/collective/skip_call.yaml");
  plan.layout.guard = Guard::off;
  Session session({.probes = false});
  const Trial trial = must_run(session, plan);
  EXPECT_NE(trial.verdict, RunVerdict::pass) << "the others add what came a step too early";
}

}  // namespace
}  // namespace firedrill
