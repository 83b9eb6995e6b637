// The planner's bytes against those that ranks count while they train.
#include <gtest/gtest.h>

#include "engine/job/memory.h"
#include "engine/job/tensors.h"
#include "engine/model/numerics.h"
#include "engine/train/crew.h"

namespace firedrill {
namespace {

// As scenarios/jobs/nano.yaml and nano-hybrid.yaml.
Job nano() {
  Job job;
  job.model = {.layers = 1, .width = 12, .heads = 2, .sequence = 16, .dropout = 0.1};
  job.lanes = {.dp = 4};
  job.batch = {.lane_micro_batch = 2, .accumulation = 1};
  return job;
}

Job nano_hybrid() {
  Job job;
  job.model = {.layers = 4, .width = 16, .heads = 2, .sequence = 16, .dropout = 0.1};
  job.lanes = {.dp = 4, .tp = 2, .cp = 2};
  job.batch = {.lane_micro_batch = 1, .accumulation = 2};
  return job;
}

// As scenarios/jobs/moe-nano.yaml.
Job moe_nano() {
  Job job = nano_hybrid();
  job.model = {.layers = 2, .width = 16, .heads = 2, .hidden = 16, .sequence = 16, .dropout = 0.1, .experts = 8};
  return job;
}

class PlannedMemory : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }

  void expect_as_planned(const Job& job, const Layout& layout) {
    ASSERT_EQ(mistakes_in(layout, job), std::vector<std::string>()) << to_string(layout);
    const Model model(job);
    const Result<Sampler> sampler = Sampler::make(job, text_.count());
    const CrewResult result = Crew(job, layout, model, *sampler, text_).run(2);
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      const RankPlace place = place_of(job, layout, rank);
      const RankMemory planned = memory_of(job, layout, place.pp, place.dp);
      const MemoryUse& used = result.memory[static_cast<std::size_t>(rank)];
      const std::string where = to_string(layout) + ", rank " + std::to_string(rank);
      EXPECT_EQ(planned.parameters, used.parameters) << where;
      EXPECT_EQ(planned.gradients, used.gradients) << where;
      EXPECT_EQ(planned.masters, used.masters) << where;
      EXPECT_EQ(planned.moments, used.moments) << where;
      EXPECT_EQ(planned.activations, used.activations) << where;
      EXPECT_GT(used.activations, 0) << where;
    }
  }

  Value text_ = Value::copy_of(std::string(3000, 'a'));
};

TEST_F(PlannedMemory, OfNanoIsWhatItsRanksHold) {
  for (const int zero : {0, 1, 2, 3}) {
    for (const int dp : {1, 2, 4}) {
      expect_as_planned(nano(), {.dp = dp, .zero = zero});
      expect_as_planned(nano(), {.dp = dp, .zero = zero, .recompute = Recompute::layer, .bucket_bytes = 4096});
    }
  }
}

TEST_F(PlannedMemory, OfNanoHybridIsWhatItsRanksHold) {
  const Job job = nano_hybrid();
  for (const int zero : {0, 1, 2, 3}) {
    expect_as_planned(job, {.zero = zero});
    expect_as_planned(job, {.dp = 2, .tp = 2, .zero = zero});
    expect_as_planned(job, {.dp = 4, .cp = 2, .zero = zero, .bucket_bytes = 4096});
    expect_as_planned(job, {.dp = 2, .tp = 2, .cp = 2, .zero = zero, .sequence_parallel = true});
    expect_as_planned(job, {.dp = 2, .pp = 3, .zero = zero});
  }
}

TEST_F(PlannedMemory, OfPipelinesIsWhatTheirStagesHold) {
  const Job job = nano_hybrid();
  for (const Recompute recompute : {Recompute::segment, Recompute::layer}) {
    expect_as_planned(job, {.pp = 4, .recompute = recompute});
    expect_as_planned(job, {.dp = 2, .pp = 2, .schedule = PipelineSchedule::gpipe, .recompute = recompute});
    const Layout interleaved{.dp = 2, .pp = 2, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2};
    expect_as_planned(job, interleaved);
  }
}

// The second run of layers is complete, and on its way, before the first has all of its accumulators.
TEST_F(PlannedMemory, OfInterleavedStagesIsWhatTheyHoldWhileBucketsAreOnTheirWay) {
  for (const int dp : {2, 4}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const int bucket : {4096, 20000}) {
        expect_as_planned(nano_hybrid(), {.dp = dp,
                                          .pp = 2,
                                          .zero = zero,
                                          .schedule = PipelineSchedule::interleaved,
                                          .virtual_stages = 2,
                                          .bucket_bytes = bucket});
      }
    }
  }
}

TEST_F(PlannedMemory, OfExpertsIsWhatTheirRanksHold) {
  const Job job = moe_nano();
  for (const int zero : {0, 1, 2, 3}) {
    expect_as_planned(job, {.zero = zero});
    expect_as_planned(job, {.dp = 4, .ep = 4, .zero = zero, .bucket_bytes = 4096});
    expect_as_planned(job, {.dp = 2, .tp = 2, .cp = 2, .ep = 4, .zero = zero});
    expect_as_planned(job, {.dp = 2, .pp = 2, .cp = 2, .ep = 2, .zero = zero});
  }
}

TEST_F(PlannedMemory, OfExpertsOfSixteenBitsIsWhatTheirRanksHold) {
  Job job = moe_nano();
  job.precision.parameters = Precision::bf16;
  job.batch.accumulation = 1;
  for (const int bucket : {0, 4096}) {
    expect_as_planned(job, {.dp = 4, .ep = 2, .bucket_bytes = bucket});
    expect_as_planned(job, {.dp = 2, .cp = 2, .ep = 4, .bucket_bytes = bucket});
  }
}

TEST_F(PlannedMemory, OfSixteenBitsAndTiedWeightsIsWhatTheirRanksHold) {
  Job job = nano_hybrid();
  job.precision.parameters = Precision::bf16;
  job.model.tied_embedding = true;
  for (const int zero : {0, 1, 2, 3}) {
    expect_as_planned(job, {.zero = zero});
    expect_as_planned(job, {.dp = 2, .tp = 2, .zero = zero, .bucket_bytes = 4096});
    expect_as_planned(job, {.dp = 4, .pp = 2, .cp = 2, .zero = zero});
  }
  for (const int cp : {1, 2}) expect_as_planned(job, {.pp = 2, .cp = cp, .recompute = Recompute::layer});
  job.batch.accumulation = 1;
  for (const int bucket : {0, 4096}) {  // fp32 for the trees over cp lanes
    expect_as_planned(job, {.dp = 4, .cp = 2, .bucket_bytes = bucket});
    expect_as_planned(job, {.dp = 2, .tp = 2, .sequence_parallel = true, .bucket_bytes = bucket});
  }
  for (const int zero : {0, 3}) expect_as_planned(job, {.dp = 4, .zero = zero, .bucket_bytes = zero * 1000});
}

// So that the figures above do not agree by chance on a model that is not the engine's.
TEST_F(PlannedMemory, CountsTheParametersThatTheModelHas) {
  for (const Lanes& lanes : {Lanes{}, Lanes{.dp = 2, .tp = 2}, Lanes{.cp = 2}, Lanes{.tp = 4, .cp = 2}}) {
    Job job = nano_hybrid();
    job.model.width = 20;
    job.model.heads = 4;
    job.model.hidden = 36;
    job.lanes = lanes;
    const Model model(job);
    EXPECT_EQ(parameter_count(job), model.parameter_count());
    std::int64_t padded = 0;
    for (const Segment& segment : model.segments()) padded += segment.count;
    job.lanes.dp = 1;
    const int tp = lanes.tp;
    EXPECT_EQ(memory_of(job, {}, 0, 0).parameters, padded * static_cast<std::int64_t>(sizeof(float))) << tp;
  }
  EXPECT_EQ(parameter_count(moe_nano()), Model(moe_nano()).parameter_count());
  Job tied = nano_hybrid();
  tied.model.tied_embedding = true;
  EXPECT_EQ(parameter_count(tied), Model(tied).parameter_count());
}

}  // namespace
}  // namespace firedrill
