// Every layout of a job gives the same bits, and the bits are those of the right thing.
#include <gtest/gtest.h>

#include "engine/train/layouts_fixture.h"
#include "engine/train/plain_training.h"

namespace firedrill {
namespace {

TEST_F(Layouts, TensorParallelDegreesChangeNoBit) {
  const Job job = small_job({.dp = 2, .tp = 4});
  const CrewResult golden = train(job, {});
  for (const bool sequence_parallel : {false, true}) {
    for (const int tp : {1, 2, 4}) {
      for (const int dp : {1, 2}) {
        expect_same(job, {.dp = dp, .tp = tp, .sequence_parallel = sequence_parallel}, golden);
      }
    }
  }
}

TEST_F(Layouts, ContextParallelDegreesChangeNoBit) {
  const Job job = small_job({.dp = 2, .tp = 2, .cp = 2});
  const CrewResult golden = train(job, {});
  for (const bool sequence_parallel : {false, true}) {
    for (const int tp : {1, 2}) {
      for (const int cp : {1, 2}) {
        expect_same(job, {.dp = 2, .tp = tp, .cp = cp, .sequence_parallel = sequence_parallel}, golden);
      }
    }
  }
}

TEST_F(Layouts, ThreeContextLanesAreAddedByTheirOwnTree) {
  Job job = small_job({.dp = 3, .tp = 1, .cp = 3});
  job.model.sequence = 18;
  const CrewResult golden = train(job, {});
  expect_same(job, {.dp = 3, .cp = 3}, golden);
  expect_same(job, {.dp = 1, .cp = 3}, golden);
}

TEST_F(Layouts, ShardedStatesChangeNoBit) {
  // With an odd width the tensors end inside of grains and the shards inside of tensors.
  for (const Lanes& lanes : {Lanes{.dp = 4}, Lanes{.dp = 4, .tp = 2, .cp = 2}, Lanes{.dp = 3}}) {
    Job job = small_job(lanes);
    job.model.width = 20;
    const CrewResult golden = train(job, {});
    for (const int zero : {1, 2, 3}) {
      for (const int dp : {1, lanes.dp == 4 ? 2 : 3, lanes.dp}) expect_same(job, {.dp = dp, .zero = zero}, golden);
      expect_same(job, {.dp = lanes.dp, .tp = lanes.tp, .cp = lanes.cp, .zero = zero}, golden);
    }
    expect_same(job, {.dp = lanes.dp, .zero = 3, .prefetch = true}, golden);
  }
}

TEST_F(Layouts, PipelinesOfEveryScheduleChangeNoBit) {
  for (const Lanes& lanes : {Lanes{.dp = 2}, Lanes{.dp = 2, .tp = 2}}) {
    Job job = small_job(lanes);
    job.model.layers = 4;
    const CrewResult golden = train(job, {});
    for (const int pp : {2, 3, 4}) {
      for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
        expect_same(job, {.dp = 2, .tp = lanes.tp, .pp = pp, .schedule = schedule}, golden);
        expect_same(job, {.dp = 1, .pp = pp, .schedule = schedule}, golden);
      }
    }
    for (const int dp : {1, 2}) {
      expect_same(job, {.dp = dp, .pp = 2, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2}, golden);
    }
    expect_same(job, {.dp = 2, .tp = lanes.tp, .pp = 2, .zero = 3, .sequence_parallel = true}, golden);
  }
}

TEST_F(Layouts, RecomputeAndBucketsChangeNoBit) {
  for (const Lanes& lanes : {Lanes{.dp = 2}, Lanes{.dp = 2, .tp = 2, .cp = 2}}) {
    const Job job = small_job(lanes);
    const CrewResult golden = train(job, {});
    expect_same(job, {.dp = 2, .pp = 2, .recompute = Recompute::layer}, golden);
    expect_same(job, {.dp = 2, .zero = 3, .recompute = Recompute::layer, .prefetch = true}, golden);
    for (const std::int64_t bytes : {1, 5000, 1000000}) {
      for (const int zero : {0, 2})
        expect_same(job, {.dp = 2, .cp = lanes.cp, .zero = zero, .bucket_bytes = bytes}, golden);
    }
  }
}

// Without dropout these jobs learn their text fast.
void expect_fifty_plain_steps(Job job, const Value& text, Closeness closeness = {}) {
  job.model.dropout = 0;
  job.data.last_batch = LastBatch::drop;
  closeness.learned = 2.5;
  expect_plain_training(job, text, 50, closeness);
}

TEST_F(Layouts, FiftyStepsOfTensorLanesFollowThePlainModel) {
  expect_fifty_plain_steps(small_job({.dp = 2, .tp = 2}), text_);
}

TEST_F(Layouts, FiftyStepsOfContextLanesFollowThePlainModel) {
  expect_fifty_plain_steps(small_job({.dp = 1, .tp = 2, .cp = 2}), text_);
}

TEST_F(Layouts, FiftyStepsOfTiedEmbeddingsFollowThePlainModel) {
  for (const Lanes& lanes : {Lanes{.dp = 1}, Lanes{.dp = 1, .tp = 2, .cp = 2}}) {
    Job job = small_job(lanes);
    job.model.tied_embedding = true;
    expect_fifty_plain_steps(job, text_);
  }
}

// A parameter of 16 bits is off by up to half a step, 2^-9 of it for bf16 and 2^-12 for fp16, and so is every
// activation: the logits are sums of such products and keep the relative error of one of them, so a loss of 5.5 nats
// is off by some 2^-9 * 5.5 = 0.01, and the path of training adds to it. Updates are of fp32 masters, each up to the
// learning rate; where rounding turns the sign of a gradient near zero, one step is off by twice that. So masters stay
// within a few hundredths of what 50 steps of 0.003 can move them, 0.15.
TEST_F(Layouts, FiftyStepsOfSixteenBitsFollowThePlainModelAsFarAsTheirRoundingLets) {
  Job job = small_job({.dp = 1, .tp = 2, .cp = 2});
  job.model.tied_embedding = true;
  job.precision.parameters = Precision::bf16;
  expect_fifty_plain_steps(job, text_, {.loss = 0.04, .parameters = 0.004});
  job.precision = {.parameters = Precision::fp16, .scaler = {.dynamic = true, .initial_scale = 0x1p10}};
  expect_fifty_plain_steps(job, text_, {.loss = 0.01, .parameters = 0.001});
}

}  // namespace
}  // namespace firedrill
