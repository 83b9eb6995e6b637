// Layouts of 16-bit jobs and of jobs with tied embeddings change no bit either; overflows are skipped by all ranks
// alike.
#include <bit>

#include "engine/base/half.h"
#include "engine/train/layouts_fixture.h"

namespace firedrill {
namespace {

// Every dimension alone and some products, as far as the job has lanes for them.
std::vector<Layout> layouts_for(const Job& job) {
  std::vector<Layout> all = {{.dp = job.lanes.dp},
                             {.dp = job.lanes.dp, .zero = 1},
                             {.dp = 2, .zero = 1, .bucket_bytes = 1},
                             {.dp = job.lanes.dp, .zero = 2, .bucket_bytes = 5000},
                             {.dp = job.lanes.dp, .zero = 3, .recompute = Recompute::layer, .prefetch = true},
                             {.dp = 2, .zero = 3},
                             {.pp = 2, .schedule = PipelineSchedule::gpipe},
                             {.dp = 2, .pp = 4, .zero = 2},
                             {.dp = 2, .pp = 2, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2},
                             {.tp = 2, .recompute = Recompute::layer},
                             {.dp = 2, .tp = 2, .pp = 2, .zero = 1},
                             {.tp = 2, .cp = 2, .sequence_parallel = true},
                             {.cp = 2, .bucket_bytes = 1},
                             {.dp = 2, .tp = 2, .pp = 2, .cp = 2, .zero = 3, .sequence_parallel = true}};
  std::erase_if(all, [&job](const Layout& layout) { return !mistakes_in(layout, job).empty(); });
  return all;
}

Job mixed_job(const Lanes& lanes, Precision precision) {
  Job job = small_job(lanes);
  job.model.layers = 4;
  job.batch.lane_micro_batch = 1;
  job.precision.parameters = precision;
  return job;
}

float scale_after(const CrewResult& result, std::size_t step) {
  const auto word = result.held.at(step - 1).at("scaler.scale").value.as<std::int64_t>()[0];
  return std::bit_cast<float>(static_cast<std::int32_t>(word));
}

class MixedLayouts : public Layouts {
 protected:
  void expect_all_same(const Job& job, std::size_t layouts_min) {
    const CrewResult golden = train(job, {});
    const std::vector<Layout> layouts = layouts_for(job);
    EXPECT_GE(layouts.size(), layouts_min);
    for (const Layout& layout : layouts) expect_same(job, layout, golden);
  }
};

TEST_F(MixedLayouts, OfSixteenBitsWithoutLanesChangeNoBit) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    Job job = mixed_job({.dp = 4}, precision);
    job.model.width = 20;  // tensors end inside of grains and shards inside of tensors
    expect_all_same(job, 9);
  }
}

TEST_F(MixedLayouts, OfSixteenBitsWithLanesOfEveryKindChangeNoBit) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    expect_all_same(mixed_job({.dp = 2, .tp = 2, .cp = 2}, precision), 14);
  }
}

TEST_F(MixedLayouts, OfTiedEmbeddingsChangeNoBit) {
  for (const Lanes& lanes : {Lanes{.dp = 4}, Lanes{.dp = 2, .tp = 2, .cp = 2}}) {
    Job job = mixed_job(lanes, Precision::fp32);
    job.model.tied_embedding = true;
    expect_all_same(job, 9);
    job.precision.parameters = Precision::bf16;
    expect_all_same(job, 9);
  }
}

TEST_F(MixedLayouts, OfTiedEmbeddingsWithExpertsChangeNoBit) {
  Job job = mixed_job({.dp = 2, .tp = 2}, Precision::fp32);
  job.model.tied_embedding = true;
  job.model.experts = 4;
  const CrewResult golden = train(job, {});
  expect_same(job, {.dp = 2, .pp = 2, .ep = 2, .zero = 1}, golden);
  expect_same(job, {.dp = 2, .tp = 2, .pp = 2, .zero = 3}, golden);
}

// A scale that is far too high at first comes down, is raised too far, and comes down again.
TEST_F(MixedLayouts, OverflowsAreSkippedByAllRanksOfEveryLayout) {
  Job job = mixed_job({.dp = 2, .tp = 2, .cp = 2}, Precision::fp16);
  job.model.tied_embedding = true;
  job.precision.scaler = {
      .dynamic = true, .initial_scale = 0x1p26, .growth = 4, .backoff = 0.125, .growth_interval = 1};
  job.steps = 8;
  const CrewResult golden = train(job, {});
  int lowered = 0;
  int raised = 0;
  for (std::size_t step = 2; step <= 8; ++step) {
    lowered += scale_after(golden, step) < scale_after(golden, step - 1) ? 1 : 0;
    raised += scale_after(golden, step) > scale_after(golden, step - 1) ? 1 : 0;
  }
  EXPECT_LT(scale_after(golden, 1), 0x1p26);
  EXPECT_GE(lowered, 1);
  EXPECT_GE(raised, 2);
  const auto updates = golden.held.back().at("optimizer.step").value.as<std::int64_t>()[0];
  EXPECT_EQ(updates, raised) << "every step without an overflow raises the scale";
  const auto& first = golden.held[0];
  const std::string weight = "embed.tp.0.token.weight";
  EXPECT_EQ(first.at(weight).value.digest(), train(job, {.dp = 2}).held[0].at(weight).value.digest());
  for (const Layout& layout : layouts_for(job)) expect_same(job, layout, golden);
}

// Without clipping the norm of 16-bit gradients does not decide their bits, and the scale does not either.
TEST_F(MixedLayouts, ALossScaleWithoutOverflowChangesNoBitOfBf16) {
  Job job = mixed_job({.dp = 2}, Precision::bf16);
  job.optimizer.clip = 0;
  const CrewResult plain = train(job, {});
  job.precision.scaler = {.dynamic = true, .initial_scale = 0x1p16};
  const CrewResult scaled = train(job, {});
  EXPECT_EQ(plain.losses, scaled.losses);
  const std::string weight = "layers.1.mlp.down.weight";
  EXPECT_TRUE(plain.held.back().at(weight).value.same_as(scaled.held.back().at(weight).value));
}

TEST_F(MixedLayouts, MastersAreFp32AndMoveByLessThanSixteenBitsShow) {
  Job job = mixed_job({.dp = 2}, Precision::bf16);
  job.steps = 1;
  job.optimizer.warmup_steps = 100;
  const CrewResult result = train(job, {});
  const Value& masters = result.held[0].at("head.norm.weight").value;  // 1 at the start
  ASSERT_EQ(masters.dtype(), DType::f32);
  int moved = 0;
  for (const float x : masters.as<float>()) {
    moved += x != 1.0F ? 1 : 0;
    float rounded[] = {x};
    round_to(DType::bf16, rounded);
    EXPECT_EQ(rounded[0], 1.0F);
  }
  EXPECT_GT(moved, 0);
}

}  // namespace
}  // namespace firedrill
