#include "engine/job/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/job/pipeline.h"
#include "engine/job/tensors.h"

namespace firedrill {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Job hybrid() {
  Job job;
  job.model = {.layers = 4, .width = 16, .heads = 4, .hidden = 32, .sequence = 32};
  job.lanes = {.dp = 4, .tp = 2, .cp = 2};
  job.batch = {.lane_micro_batch = 1, .accumulation = 2};
  return job;
}

TEST(Planner, SixteenBitsTakeSixteenBytesAParameterUnsharded) {
  Job job = hybrid();
  EXPECT_EQ(element_bytes(job).state(), 16);
  EXPECT_EQ(element_bytes(job).master, 0);
  job.precision.parameters = Precision::bf16;
  const ElementBytes bytes = element_bytes(job);
  EXPECT_EQ(bytes.state(), 16);
  EXPECT_THAT((std::vector{bytes.parameter, bytes.gradient, bytes.master, bytes.moments}), ElementsAre(2, 2, 4, 8));
}

TEST(Planner, MicroBatchesUnderWayAreThoseOfTheSchedule) {
  Job job = hybrid();
  job.batch.accumulation = 6;
  const Layout plain{.dp = 4, .pp = 4};
  EXPECT_EQ(micro_batches_in_flight(job, plain, 0), 4);
  EXPECT_EQ(micro_batches_in_flight(job, plain, 3), 1);
  const Layout gpipe{.dp = 4, .pp = 4, .schedule = PipelineSchedule::gpipe};
  EXPECT_EQ(micro_batches_in_flight(job, gpipe, 3), 6);
  // Two runs of layers on each of two ranks: 2 x (2 - 1) + 2 forwards ahead, and one more before the first backward.
  const Layout twice{.dp = 4, .pp = 2, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2};
  EXPECT_EQ(micro_batches_in_flight(job, twice, 0), 5);
}

TEST(Planner, TheBubbleIsThatOfTheFormula) {
  Job job = hybrid();
  job.batch.accumulation = 6;
  EXPECT_DOUBLE_EQ(bubble_fraction({.dp = 4, .pp = 4}, job), 3.0 / 9.0);
  EXPECT_DOUBLE_EQ(bubble_fraction({.dp = 4}, job), 0.0);
  const Layout twice{.dp = 4, .pp = 2, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2};
  EXPECT_DOUBLE_EQ(bubble_fraction(twice, job), 1.0 / 13.0);
}

// Unequal shards make classes of their own, and all ranks are in one.
TEST(Planner, EveryRankIsInOneClassAndTheWorstIsNamed) {
  Job job = hybrid();
  job.lanes.dp = 3;
  const Layout layout{.dp = 3, .tp = 2, .pp = 2, .zero = 1};
  const MemoryPlan plan = plan_memory(job, layout, {.gpu_memory = 1'000'000});
  EXPECT_GT(plan.classes.size(), 2U);
  int ranks = 0;
  for (const RankClass& ranks_alike : plan.classes) {
    ranks += ranks_alike.ranks;
    EXPECT_LE(ranks_alike.memory.total(), plan.classes[plan.worst].memory.total());
  }
  EXPECT_EQ(ranks, layout.world_size());
  EXPECT_EQ(plan.needed(), plan.classes[plan.worst].memory.total() + 100'000);
  EXPECT_EQ(plan.fits(), plan.needed() <= 1'000'000);
}

TEST(Planner, OnlyLegalLayoutsThatFitAreProposedInTheSmallestWorld) {
  const Job job = hybrid();
  const std::int64_t one_rank = memory_needed(job, {}, {.gpu_memory = 0});
  for (const std::int64_t memory : {2 * one_rank, one_rank * 3 / 4, one_rank / 3}) {
    const auto choices = layouts_that_fit(job, {.memory = {.gpu_memory = memory}});
    ASSERT_FALSE(choices.empty()) << memory;
    for (const LayoutChoice& choice : choices) {
      EXPECT_THAT(mistakes_in(choice.layout, job), IsEmpty());
      EXPECT_LE(plan_memory(job, choice.layout, {.gpu_memory = memory}).needed(), memory);
      EXPECT_EQ(choice.layout.world_size(), choices.front().layout.world_size());
    }
    EXPECT_EQ(choices.front().layout.world_size() == 1, memory > one_rank);
  }
  EXPECT_THAT(layouts_that_fit(job, {.memory = {.gpu_memory = 1000}}), IsEmpty());
}

TEST(Placement, NamesTheGroupsThatCrossNodes) {
  Job job = hybrid();
  job.cluster.ranks_per_node = 4;
  const Layout layout{.dp = 4, .tp = 2, .cp = 2};
  std::vector<std::string> crossing;
  for (const GroupPlacement& placement : placement_of(job, layout)) {
    if (placement.crosses()) crossing.push_back(placement.group);
    EXPECT_EQ(placement.bandwidth, placement.crosses() ? 25e9 : 100e9);
  }
  EXPECT_THAT(crossing, ElementsAre("dp", "world"));
  EXPECT_THAT(warnings_of(job, layout), IsEmpty());
  job.cluster.ranks_per_node = 3;  // a pair of every second node boundary is cut
  EXPECT_THAT(warnings_of(job, layout), ElementsAre(AllOf(HasSubstr("layout.tp is 2 with 3 ranks to a node"),
                                                          HasSubstr("25GB/s instead of 100GB/s"))));
}

TEST(Placement, AgreesWithTheGroupsThatRanksAreIn) {
  Job job = hybrid();
  job.cluster.ranks_per_node = 3;
  const Layout layout{.dp = 4, .tp = 2, .pp = 2, .cp = 2};
  std::map<std::string, int> nodes;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    const Groups groups = groups_of(job, layout, rank);
    for (const Group& group : {groups.tp, groups.cp, groups.dp, groups.pp, groups.world}) {
      std::set<int> of_group;
      for (const int member : group.ranks) of_group.insert(node_of(job, member));
      nodes[group.name] = std::max(nodes[group.name], static_cast<int>(of_group.size()));
    }
  }
  for (const GroupPlacement& placement : placement_of(job, layout)) {
    EXPECT_EQ(placement.nodes, nodes[placement.group]) << placement.group;
  }
}

TEST(Placement, WarnsOfFewerMicroBatchesThanStagesWithTheBubble) {
  const Job job = hybrid();
  EXPECT_THAT(warnings_of(job, {.dp = 4, .pp = 4}),
              ElementsAre(AllOf(HasSubstr("layout.pp is 4 and a rank has 2 micro-batches"), HasSubstr("60 %"))));
  EXPECT_THAT(warnings_of(job, {.dp = 2, .pp = 4}), IsEmpty());
}

TEST(Placement, MistakesNameTheNearestLayouts) {
  EXPECT_THAT(mistakes_and_remedies({.dp = 3, .tp = 2}, hybrid()),
              ElementsAre(AllOf(HasSubstr("layout.dp is 3"), HasSubstr("that fit: dp=4,tp=2 or dp=2,tp=2"))));
  EXPECT_THAT(mistakes_and_remedies({.dp = 2}, hybrid()), IsEmpty());
}

}  // namespace
}  // namespace firedrill
