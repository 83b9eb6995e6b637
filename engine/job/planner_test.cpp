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

// The list of layouts and the plan of one say the same of its worst rank, also where shards are unequal.
TEST(Planner, WhatASearchNeedsIsWhatThePlanNeeds) {
  Job job = hybrid();
  job.lanes.dp = 6;
  for (const int dp : {2, 3, 6}) {
    for (const int zero : {0, 1, 2, 3}) {
      const Layout layout{.dp = dp, .tp = 2, .pp = 2, .zero = zero};
      EXPECT_EQ(memory_needed(job, layout, {}), plan_memory(job, layout, {}).needed()) << to_string(layout);
    }
  }
}

TEST(Planner, WithZero3AnAttentionThatRunsAgainIsWholeBesideItsMlp) {
  const Job job = hybrid();
  const auto buffers = [&job](Layout layout) { return memory_of(job, layout, 1, 0).buffers; };
  const Layout plain{.dp = 4, .pp = 4, .zero = 3};  // one layer to a stage
  Layout again = plain;
  again.recompute = Recompute::layer;
  const PieceSize attention = size_of(PieceRole::attention, job);
  const PieceSize mlp = size_of(PieceRole::mlp, job);
  const auto bytes = [&job](const PieceSize& size) { return 4 * (size.shared.count + job.lanes.tp * size.lane.count); };
  ASSERT_LT(bytes(attention), bytes(mlp));
  EXPECT_EQ(buffers(again) - buffers(plain), bytes(attention));
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
  job.model.experts = 8;
  job.model.tied_embedding = true;
  for (const int ep : {1, 2, 4}) {
    const Layout layout{.dp = 4, .tp = 2, .pp = 3, .cp = 2, .ep = ep};
    std::map<std::string, int> nodes;
    std::map<std::string, int> sizes;
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      const Groups groups = groups_of(job, layout, rank);
      for (const Group& group : {groups.tp, groups.cp, groups.ep, groups.dp, groups.pp, groups.expert_cp,
                                 groups.expert_dp, groups.tied, groups.world}) {
        std::set<int> of_group;
        for (const int member : group.ranks) of_group.insert(node_of(job, member));
        nodes[group.name] = std::max(nodes[group.name], static_cast<int>(of_group.size()));
        sizes[group.name] = std::max(sizes[group.name], group.size());
      }
    }
    std::set<std::string> placed;
    for (const GroupPlacement& placement : placement_of(job, layout)) {
      EXPECT_EQ(placement.nodes, nodes[placement.group]) << placement.group;
      EXPECT_EQ(placement.size, sizes[placement.group]) << placement.group;
      placed.insert(placement.group);
    }
    for (const auto& [group, size] : sizes) {
      const bool named_before = ep == 1 && group.starts_with("expert.");  // as the cp and dp groups
      EXPECT_EQ(placed.contains(group), size > 1 && !named_before) << group;
    }
  }
}

TEST(Placement, WarnsOfFewerMicroBatchesThanStagesWithTheBubble) {
  const Job job = hybrid();
  EXPECT_THAT(warnings_of(job, {.dp = 4, .pp = 4}),
              ElementsAre(AllOf(HasSubstr("layout.pp is 4 and a rank has 2 micro-batches"), HasSubstr("60 %"))));
  EXPECT_THAT(warnings_of(job, {.dp = 2, .pp = 4}), IsEmpty());
}

TEST(Placement, WarnsOfAPrefetchThatDoesNothing) {
  EXPECT_THAT(warnings_of(hybrid(), {.dp = 4, .zero = 2, .prefetch = true}),
              ElementsAre(AllOf(HasSubstr("layout.prefetch is on and layout.zero is 2"), HasSubstr("does nothing"))));
  EXPECT_THAT(warnings_of(hybrid(), {.dp = 4, .zero = 3, .prefetch = true}), IsEmpty());
}

double bytes_over(const Job& job, const Layout& layout, const std::string& group) {
  for (const GroupExchange& exchange : estimate_step(job, layout).exchanges) {
    if (exchange.placement.group == group) return exchange.bytes;
  }
  return 0;
}

// By hand, with n the elements that a rank holds: a ring over 4 dp ranks sends 3/4 of them once for each half.
TEST(Estimate, GradientsTravelInFp32AndParametersInTheirOwn) {
  Job job = hybrid();
  job.precision.parameters = Precision::bf16;
  const std::int64_t n = memory_of(job, {.dp = 4}, 0, 0).parameters / 2;
  const auto over_dp = [&job](int zero) { return bytes_over(job, {.dp = 4, .zero = zero}, "dp"); };
  const double half = 0.75 * static_cast<double>(n);
  EXPECT_DOUBLE_EQ(over_dp(0), half * 8);
  EXPECT_DOUBLE_EQ(over_dp(1), half * (8 + 2));
  EXPECT_DOUBLE_EQ(over_dp(2), half * (4 + 2));
  EXPECT_DOUBLE_EQ(over_dp(3), half * (4 + 2 * 2 * 2));  // for two micro-batches, forward and backward
}

// Over 2 cp ranks half of each of two halves, for each of the rank's 2 dp lanes; keys besides: gathered twice and
// reduced once in 4 layers and 4 micro-batches, half of 32 tokens x 2 x 16 numbers.
TEST(Estimate, GradientsAreAddedOverContextRanksToo) {
  const Job job = hybrid();
  const Layout layout{.dp = 2, .cp = 2};
  const double n = static_cast<double>(memory_of(job, layout, 0, 0).parameters) / 4;
  const double keys = 3 * 4 * 4 * 0.5 * (32 * 2 * 16 * 4);
  EXPECT_DOUBLE_EQ(bytes_over(job, layout, "cp"), keys + 2 * 0.5 * n * 4 * 2);
}

// 8 experts over ep groups of 2 dp ranks, of which there are 2: half of each of two halves of 4 experts' gradients.
TEST(Estimate, ExpertGradientsTravelAmongThoseThatHoldTheSameExperts) {
  Job job = hybrid();
  job.model.experts = 8;
  const Layout layout{.dp = 4, .ep = 2};
  const auto own = 4.0 * 4 * 2 * static_cast<double>(size_of(PieceRole::mlp, job).expert.count);  // layers, experts, tp
  const double all = static_cast<double>(memory_of(job, layout, 0, 0).parameters) / 4;
  EXPECT_DOUBLE_EQ(bytes_over(job, layout, "expert.dp"), 2 * 0.5 * own * 4);
  EXPECT_DOUBLE_EQ(bytes_over(job, layout, "dp"), 2 * 0.75 * (all - own) * 4);
  EXPECT_EQ(bytes_over(job, layout, "expert.cp"), 0);
  EXPECT_GT(bytes_over(job, {.dp = 2, .cp = 2}, "cp"), 2 * 0.5 * 2 * own * 4 * 2);  // all 8 experts of each rank
}

TEST(Placement, MistakesNameTheNearestLayouts) {
  EXPECT_THAT(mistakes_and_remedies({.dp = 3, .tp = 2}, hybrid()),
              ElementsAre(AllOf(HasSubstr("layout.dp is 3"), HasSubstr("that fit: dp=4,tp=2 or dp=2,tp=2"))));
  EXPECT_THAT(mistakes_and_remedies({.dp = 2}, hybrid()), IsEmpty());
}

}  // namespace
}  // namespace firedrill
