// Every layout of a job with experts gives the same bits, wherever the experts lie.
#include <gtest/gtest.h>

#include "engine/model/numerics.h"
#include "engine/train/test_layouts.h"

namespace firedrill {
namespace {

Job expert_job(const Lanes& lanes) {
  Job job;
  job.model = {.layers = 2, .width = 16, .heads = 2, .hidden = 12, .sequence = 16, .dropout = 0.1};
  job.model.experts = 8;
  job.lanes = lanes;
  job.batch = {.lane_micro_batch = 1, .accumulation = 2};
  job.optimizer = {.lr = 0.003, .warmup_steps = 2, .weight_decay = 0.1, .clip = 1.0};
  job.steps = 3;
  return job;
}

class ExpertLayouts : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }

  void expect_all_same(const Job& job, const std::vector<Layout>& layouts) {
    const CrewResult golden = train(job, {}, text_);
    for (const Layout& layout : layouts) expect_same(train(job, layout, text_), golden, layout);
  }

  Value text_ = text_to_learn();
};

TEST_F(ExpertLayouts, ExpertDegreesChangeNoBit) {
  const Job job = expert_job({.dp = 4, .tp = 2, .cp = 2});
  expect_all_same(job, {
                           {.dp = 4, .ep = 1},
                           {.dp = 4, .ep = 2},
                           {.dp = 4, .ep = 4},
                           {.cp = 2, .ep = 2},
                           {.dp = 4, .cp = 2, .ep = 2},
                           {.dp = 4, .cp = 2, .ep = 4},
                           {.dp = 2, .cp = 2, .ep = 4},
                           {.dp = 4, .tp = 2, .cp = 2, .ep = 8},
                           {.dp = 2, .tp = 2, .ep = 2},
                       });
}

TEST_F(ExpertLayouts, WithoutTensorAndContextLanesExpertsAreStillDealt) {
  Job job = expert_job({.dp = 4});
  job.model.top_k = 1;
  expect_all_same(job, {{.dp = 4, .ep = 4}, {.dp = 2, .ep = 2}, {.dp = 4, .pp = 2, .ep = 2, .zero = 3}});
}

TEST_F(ExpertLayouts, ThreeContextLanesAndSixExpertsAreAddedByTheirOwnTrees) {
  Job job = expert_job({.dp = 2, .cp = 3});
  job.model.experts = 6;
  job.model.sequence = 18;
  expect_all_same(job, {{.dp = 2, .cp = 3, .ep = 3}, {.dp = 2, .cp = 3, .ep = 6}, {.dp = 2, .ep = 2}});
}

TEST_F(ExpertLayouts, ShardedStatesChangeNoBit) {
  const Job job = expert_job({.dp = 4, .tp = 2, .cp = 2});
  std::vector<Layout> layouts;
  for (const int zero : {1, 2, 3}) {
    layouts.push_back({.dp = 4, .ep = 2, .zero = zero});
    layouts.push_back({.dp = 4, .cp = 2, .ep = 4, .zero = zero});
  }
  layouts.push_back({.dp = 2, .tp = 2, .cp = 2, .ep = 2, .zero = 3, .sequence_parallel = true, .prefetch = true});
  expect_all_same(job, layouts);
}

TEST_F(ExpertLayouts, StagesRecomputeAndBucketsChangeNoBit) {
  const Job job = expert_job({.dp = 2, .tp = 2, .cp = 2});
  expect_all_same(job, {
                           {.dp = 2, .pp = 2, .ep = 2},
                           {.dp = 2, .pp = 2, .ep = 2, .schedule = PipelineSchedule::gpipe},
                           {.dp = 2, .tp = 2, .ep = 2, .sequence_parallel = true, .recompute = Recompute::layer},
                           {.dp = 2, .cp = 2, .ep = 2, .zero = 2, .bucket_bytes = 1},
                           {.dp = 2, .cp = 2, .ep = 4, .bucket_bytes = 20000},
                           {.dp = 2, .pp = 2, .cp = 2, .ep = 4, .zero = 3, .recompute = Recompute::layer},
                       });
}

TEST_F(ExpertLayouts, SixteenBitsChangeNoBitEither) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    Job job = expert_job({.dp = 4, .tp = 2, .cp = 2});
    job.precision.parameters = precision;
    job.precision.scaler.dynamic = precision == Precision::fp16;
    expect_all_same(job, {
                             {.dp = 4, .ep = 2},
                             {.dp = 2, .tp = 2, .cp = 2, .ep = 4, .sequence_parallel = true},
                             {.dp = 2, .pp = 2, .cp = 2, .ep = 4, .zero = 3, .recompute = Recompute::layer},
                         });
  }
}

// Rows that are not there must not take places from those that are, on any stage.
TEST_F(ExpertLayouts, AStageInTheMiddleKnowsWhichRowsAreThere) {
  Job job = expert_job({.dp = 2, .cp = 2});
  job.model.layers = 3;
  job.batch.lane_micro_batch = 2;
  job.steps = 28;  // into the next epoch, over the smaller batch at the end of the first
  const Layout staged{.dp = 2, .pp = 3, .ep = 2};
  const CrewResult golden = train(job, {}, text_);
  expect_same(train(job, staged, text_), golden, staged);
}

}  // namespace
}  // namespace firedrill
