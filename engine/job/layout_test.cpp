#include "engine/job/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/job/limits.h"

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

TEST(Layouts, ADegreeThatDoesNotDivideItsLanesIsRefusedWithTheNearestThatDoes) {
  EXPECT_THAT(mistakes_in({.dp = 3}, hybrid()), ElementsAre(AllOf(HasSubstr("layout.dp is 3"), HasSubstr("4 dp lanes"),
                                                                  HasSubstr("nearest that does is 2"))));
  EXPECT_THAT(mistakes_in({.tp = 4}, hybrid()), ElementsAre(AllOf(HasSubstr("layout.tp is 4"), HasSubstr("is 2"))));
  EXPECT_THAT(mistakes_in({.cp = 0}, hybrid()), ElementsAre(HasSubstr("layout.cp is 0: give 1 or more")));
  EXPECT_THAT(mistakes_in({.dp = 2, .tp = 2, .pp = 4, .cp = 2, .zero = 3}, hybrid()), IsEmpty());
  EXPECT_THAT(mistakes_in({.zero = 4}, hybrid()), ElementsAre(HasSubstr("layout.zero is 4: give 0 to 3")));
}

TEST(Layouts, MoreStagesThanLayersAreRefused) {
  EXPECT_THAT(mistakes_in({.pp = 5}, hybrid()),
              ElementsAre(AllOf(HasSubstr("5 stages for 4 layers"), HasSubstr("most that fit are 4"))));
  EXPECT_THAT(mistakes_in({.pp = 4, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2}, hybrid()),
              ElementsAre(HasSubstr("8 stages for 4 layers")));
}

TEST(Layouts, AnInterleavedScheduleNeedsUnitsThatItsRanksDivide) {
  const Layout layout{.dp = 4, .pp = 4, .schedule = PipelineSchedule::interleaved, .virtual_stages = 1};
  EXPECT_THAT(mistakes_in(layout, hybrid()), ElementsAre(HasSubstr("virtual_stages is 1 with schedule interleaved")));
  Job job = hybrid();
  job.model.layers = 12;
  job.batch.accumulation = 3;
  const Layout three{.dp = 4, .pp = 2, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2};
  EXPECT_THAT(mistakes_in(three, job),
              ElementsAre(AllOf(HasSubstr("1 x 3 = 3 are not"), HasSubstr("nearest pp is 1"))));
}

Job with_experts() {
  Job job = hybrid();
  job.model.experts = 8;
  return job;
}

TEST(Layouts, AnExpertDegreeThatDoesNotFitIsRefusedWithTheNumbersAndTheNearest) {
  EXPECT_THAT(mistakes_in({.dp = 4, .ep = 3}, with_experts()),
              ElementsAre(AllOf(HasSubstr("layout.ep is 3"), HasSubstr("8 experts"), HasSubstr("fits is 2"))));
  EXPECT_THAT(mistakes_in({.dp = 2, .ep = 8}, with_experts()),
              ElementsAre(AllOf(HasSubstr("layout.ep is 8"), HasSubstr("2 x 1 = 2"), HasSubstr("fits is 2"))));
  EXPECT_THAT(mistakes_in({.dp = 4, .ep = 0}, with_experts()), ElementsAre(HasSubstr("layout.ep is 0")));
  EXPECT_THAT(mistakes_in({.dp = 4, .ep = 2}, hybrid()),
              ElementsAre(AllOf(HasSubstr("layout.ep is 2"), HasSubstr("no experts"))));
  EXPECT_THAT(mistakes_in({.dp = 4, .cp = 2, .ep = 8}, with_experts()), IsEmpty());
  Job six = with_experts();
  six.model.experts = 12;
  six.model.sequence = 48;
  six.lanes.cp = 3;
  EXPECT_THAT(mistakes_in({.dp = 4, .cp = 3, .ep = 4}, six),
              ElementsAre(AllOf(HasSubstr("layout.ep is 4"), HasSubstr("cp, 3"), HasSubstr("fits is 3"))));
}

TEST(Layouts, ExpertsThatAJobCannotHaveAreRefusedWithTheNumbers) {
  const auto mistakes = [](int experts, int top_k, double factor, double balance) {
    Job job = hybrid();
    job.model.experts = experts;
    job.model.top_k = top_k;
    job.model.capacity_factor = factor;
    job.model.balance_loss = balance;
    return mistakes_in(job);
  };
  EXPECT_THAT(mistakes(8, 2, 1.25, 0.01), IsEmpty());
  EXPECT_THAT(mistakes(-1, 2, 1.25, 0.01), ElementsAre(HasSubstr("model.experts is -1")));
  EXPECT_THAT(mistakes(8, 9, 1.25, 0.01),
              ElementsAre(AllOf(HasSubstr("top_k is 9"), HasSubstr("experts 8"), HasSubstr("fits is 8"))));
  EXPECT_THAT(mistakes(8, 0, 1.25, 0.01), ElementsAre(AllOf(HasSubstr("top_k is 0"), HasSubstr("fits is 1"))));
  EXPECT_THAT(mistakes(8, 2, 0, 0.01),
              ElementsAre(AllOf(HasSubstr("capacity_factor is 0"), HasSubstr("4 drops none"))));
  EXPECT_THAT(mistakes(8, 2, -1, -2), ElementsAre(HasSubstr("capacity_factor is -1"), HasSubstr("balance_loss is -2")));
}

// A shape that the engine cannot run is no mistake: it can be planned.
TEST(Jobs, AShapeThatCannotRunYetIsToldFromOneThatIsWrong) {
  Job job = hybrid();
  job.model.vocabulary = 128256;
  job.model.kv_heads = 2;
  EXPECT_THAT(mistakes_in(job), IsEmpty());
  EXPECT_THAT(cannot_run(job), ElementsAre(HasSubstr("model.vocabulary is 128256"), HasSubstr("model.kv_heads is 2")));
  job.model.kv_heads = 3;
  EXPECT_THAT(mistakes_in(job), testing::Contains(HasSubstr("model.kv_heads is 3 and does not divide model.heads 4")));
  job.model.kv_heads = 1;
  EXPECT_THAT(mistakes_in(job), ElementsAre(HasSubstr("lanes.tp is 2 and does not divide model.kv_heads 1")));
}

// Every rank is in one place; the members of a group say the same of it.
TEST(Groups, EachRankIsInOneGroupOfEachKindAndAllMembersAgree) {
  const Job job = with_experts();
  const Layout layout{.dp = 4, .tp = 2, .pp = 2, .cp = 2, .ep = 4};
  std::vector<Groups> all;
  for (int rank = 0; rank < layout.world_size(); ++rank) all.push_back(groups_of(job, layout, rank));
  for (const auto kind : {&Groups::dp, &Groups::tp, &Groups::cp, &Groups::pp, &Groups::model, &Groups::pp_backward,
                          &Groups::ep, &Groups::expert_cp, &Groups::expert_dp}) {
    std::set<std::vector<int>> groups;
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      const Group& group = all[static_cast<std::size_t>(rank)].*kind;
      EXPECT_EQ(group.ranks[static_cast<std::size_t>(group.me)], rank) << group.name;
      for (const int member : group.ranks) {
        EXPECT_EQ((all[static_cast<std::size_t>(member)].*kind).ranks, group.ranks) << group.name;
        EXPECT_EQ((all[static_cast<std::size_t>(member)].*kind).lanes, group.lanes) << group.name;
      }
      groups.insert(group.ranks);
    }
    std::size_t members = 0;
    for (const auto& group : groups) members += group.size();
    EXPECT_EQ(members, static_cast<std::size_t>(layout.world_size()));
  }
  std::set<std::uint32_t> ids;
  const Groups& g = all.front();
  for (const Group* group :
       {&g.world, &g.publish, &g.dp, &g.tp, &g.cp, &g.pp, &g.pp_backward, &g.model, &g.ep, &g.expert_cp, &g.expert_dp})
    EXPECT_TRUE(ids.insert(group->id).second) << group->name;
}

// 8 ranks as a grid of 4 dp by 2 cp, cp fastest: the ep groups are runs of it.
TEST(Places, ExpertsAreDealtInOrderToRunsOfRanks) {
  const Job job = with_experts();
  const Layout four{.dp = 4, .cp = 2, .ep = 4};
  EXPECT_EQ(groups_of(job, four, 5).ep.ranks, (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(groups_of(job, four, 5).expert_dp.ranks, (std::vector<int>{1, 5}));
  EXPECT_EQ(groups_of(job, four, 5).expert_cp.ranks, (std::vector<int>{5}));
  const RankPlace place = place_of(job, four, 5);
  EXPECT_EQ(place.experts, (LaneRange{.begin = 2, .end = 4}));
  EXPECT_EQ(place.expert_dp_lanes, (LaneRange{.begin = 2, .end = 4}));
  EXPECT_EQ(place.expert_cp_lanes, (LaneRange{.begin = 0, .end = 2}));
  const Layout one{.dp = 4, .cp = 2, .ep = 1};
  EXPECT_EQ(groups_of(job, one, 5).expert_dp.ranks, groups_of(job, one, 5).dp.ranks);
  EXPECT_EQ(groups_of(job, one, 5).expert_cp.ranks, groups_of(job, one, 5).cp.ranks);
  EXPECT_EQ(groups_of(job, four, 5).model.ranks, (std::vector<int>{4, 5, 6, 7}));
}

TEST(Places, SequenceParallelRanksOwnTheChunksOfTheirLanes) {
  const Job job = hybrid();
  const Layout layout{.tp = 2, .sequence_parallel = true};
  EXPECT_EQ(place_of(job, layout, 1).chunks, (LaneRange{.begin = 1, .end = 2}));
  EXPECT_EQ(place_of(job, {.tp = 2}, 1).chunks, (LaneRange{.begin = 0, .end = 2}));
}

}  // namespace
}  // namespace firedrill
