// Layouts of the hybrid job as real processes: the bits are those of one rank in the sim world.
#include <gtest/gtest.h>

#include "harness/run/test_runs.h"

namespace firedrill {
namespace {

class ProcessLayouts : public testing::Test {
 protected:
  ProcessLayouts() {
    Loaded<Job> job = load_job("scenarios/jobs/nano-hybrid.yaml");
    FD_CHECK(static_cast<bool>(job), "{}", job.mistakes.front());
    plan_.scenario = "nano-hybrid";
    plan_.job = *job;
    plan_.run_id = run_id_of(plan_.job);
    plan_.world = WorldKind::process;
    plan_.recovery.budget = 0;
  }

  void expect_golden(const Layout& layout, std::size_t fired = 0) {
    plan_.layout = layout;
    const Result<RunReport> report = session_.run(plan_);
    ASSERT_TRUE(report) << describe(report.error());
    EXPECT_EQ(report->verdict, RunVerdict::pass) << to_string(layout) << ": " << report->reason;
    EXPECT_EQ(report->final_digest, report->golden_digest) << to_string(layout);
    EXPECT_EQ(report->fired.size(), fired);
  }

  Session session_{{.golden_directory = "golden"}};
  Plan plan_;
};

TEST_F(ProcessLayouts, OfEachDimensionAndOfTheirProductsEqualTheGolden) {
  expect_golden({.dp = 4, .zero = 3, .prefetch = true});
  expect_golden({.tp = 2, .cp = 2, .sequence_parallel = true});
  expect_golden({.pp = 4, .schedule = PipelineSchedule::gpipe});
  expect_golden({.dp = 2, .pp = 2, .zero = 2, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2});
  expect_golden({.dp = 2, .tp = 2, .cp = 2, .zero = 1});
  expect_golden({.dp = 4, .tp = 2, .cp = 2, .sequence_parallel = true, .recompute = Recompute::layer});
}

TEST_F(ProcessLayouts, AKilledRankIsFollowedByAnotherLayoutThatEndsEqualToTheGolden) {
  plan_.faults = {FaultSpec{.kind = FaultKind::kill, .at = {.rank = 5, .step = 7, .phase = Phase::backward}}};
  plan_.recovery = {.budget = 1, .layout = Layout{.dp = 2, .pp = 2, .zero = 3}};
  expect_golden({.dp = 2, .tp = 2, .cp = 2}, 1);
}

}  // namespace
}  // namespace firedrill
