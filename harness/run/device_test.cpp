// What a run says of a device that is not here, and the golden of a job whose bits depend on its layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/train/device/job_compute.h"
#include "harness/run/run.h"
#include "harness/run/test_runs.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

TEST(Device, CudaIsRefusedInBothWorldsWhereThereIsNoGpu) {
  Plan plan = plan_of("scenarios/quickstart.yaml");
  plan.job.device = Device::cuda;
  if (gpus_for(plan.job) > 0) GTEST_SKIP() << "there is a GPU";
  Session session({});
  for (const WorldKind world : {WorldKind::sim, WorldKind::process}) {
    plan.world = world;
    const Result<RunReport> report = session.run(plan);
    ASSERT_TRUE(report.failed_with(Code::invalid_input));
    EXPECT_THAT(report.error().message, HasSubstr("device is cuda"));
    EXPECT_THAT(report.error().message, HasSubstr("device: cpu")) << "the remedy";
  }
}

// On CPUs the tree adds, whoever asks: the golden of a layout then is the job's.
TEST(GoldenOfALayout, IsTheEndOfAnUndisturbedRunOfThatLayoutInItsWorld) {
  Plan plan = plan_of("scenarios/quickstart.yaml");  // its faults have no part in it
  plan.world = WorldKind::process;
  Session session({});
  const Result<Golden> of_layout = session.record_in_layout(plan);
  ASSERT_TRUE(of_layout) << describe(of_layout.error());
  const Result<const Golden*> of_job = session.golden(plan.job);
  ASSERT_TRUE(of_job) << describe(of_job.error());
  EXPECT_FALSE(difference(**of_job, *of_layout));
  EXPECT_EQ(of_layout->steps.size(), static_cast<std::size_t>(plan.job.steps));
  EXPECT_THAT(of_layout->key.numerics, HasSubstr(to_string(plan.layout)));
}

TEST(GoldenOfALayout, IsNotTakenForThatOfTheJob) {
  Job job = plan_of("scenarios/quickstart.yaml").job;
  job.collectives = Reduction::native;
  Session session({});
  EXPECT_THAT(describe(session.golden(job).error()), HasSubstr("other bits in every layout"));
  EXPECT_THAT(describe(session.record(job).error()), HasSubstr("collectives: tree"));
}

}  // namespace
}  // namespace firedrill
