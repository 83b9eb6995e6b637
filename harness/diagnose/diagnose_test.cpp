// What diagnosis says of figures that are given: each cause alone, what lies just below it, and which comes first.
#include "harness/diagnose/diagnose.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/diagnose/causes.h"

namespace firedrill {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::int64_t us = 1'000;

// Four ranks that take as long in all, and links and calls that cost next to nothing: a step of 1 ms.
Figures even(const Layout& layout) {
  Figures figures;
  figures.plan.job.model.layers = 4;
  figures.plan.job.lanes = {.dp = 4, .tp = 2, .cp = 1};
  figures.plan.job.cluster.ranks_per_node = 2;
  figures.plan.job.checkpoint.every = 2;
  figures.plan.layout = layout;
  figures.steps = 12;
  figures.step = 1'000 * us;
  for (int rank = 0; rank < 4; ++rank) {
    RankFigures one{.rank = rank,
                    .stage = place_of(figures.plan.job, layout, rank).pp,
                    .node = rank / 2,
                    .steps = figures.steps,
                    .saves = 6,
                    .parts = {},
                    .per_file_change = 100 * us,
                    .step = figures.step};
    const std::array<std::int64_t, 6> own = {10 * us, 200 * us, 500 * us, 100 * us, 50 * us, 1'000 * us};
    for (std::size_t p = 0; p < own.size(); ++p) one.parts[p].own = own[p];
    figures.ranks.push_back(one);
  }
  for (int low = 0; low < 4; ++low) {
    for (int high = low + 1; high < 4; ++high) {
      figures.links.push_back(
          {.rank = low, .peer = high, .kind = 1, .messages = 2, .bytes = 1'000, .sending = us, .under_way = 10 * us});
    }
  }
  figures.groups = {
      {.name = "dp", .time = 50 * us, .calls = 2, .bytes = 2'000, .reductions = 2, .reduced_bytes = 2'000}};
  return figures;
}

std::int64_t& own(Figures& figures, int rank, StepPart part) {
  return figures.ranks[static_cast<std::size_t>(rank)].parts[static_cast<std::size_t>(part)].own;
}

std::vector<std::string> said(const Diagnosis& diagnosis) {
  std::vector<std::string> all;
  for (const Cause& cause : diagnosis.causes) all.push_back(std::string(to_string(cause.kind)) + ": " + cause.where);
  return all;
}

TEST(Diagnosis, OfEvenRanksAccusesNobody) {
  const Diagnosis diagnosis = diagnose(even({.dp = 4}));
  EXPECT_THAT(said(diagnosis), IsEmpty());
  EXPECT_FALSE(diagnosis.next);
  EXPECT_THAT(to_text(diagnosis), HasSubstr("nothing stands out"));
  EXPECT_EQ(json_of(diagnosis)["next"], nullptr);
}

TEST(Diagnosis, NamesARankWhoseForwardTakesFourTimesAsLong) {
  Figures figures = even({.dp = 4});
  own(figures, 2, StepPart::forward) *= 4;
  const Diagnosis diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), ElementsAre("slow rank: rank 2 (node 1)"));
  EXPECT_EQ(diagnosis.causes.front().cost, 600 * us);
  EXPECT_EQ(diagnosis.next->variable, "node of rank 2");
  EXPECT_THAT(to_text(diagnosis), HasSubstr("forward 800.0 us against 200.0 us of its peers, 4.0 times as long"));
}

TEST(Diagnosis, LeavesOutWhatHardlyMakesAStepLonger) {
  Figures figures = even({.dp = 4});
  own(figures, 2, StepPart::input) *= 10;  // 90 us of a millisecond
  EXPECT_THAT(said(diagnose(figures)), IsEmpty());
  own(figures, 2, StepPart::input) *= 2;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow input: rank 2 (node 1)"));
}

TEST(Diagnosis, NamesTheRankWhereSeveralOfItsPartsStandOut) {
  Figures figures = even({.dp = 4});
  own(figures, 1, StepPart::input) *= 40;
  own(figures, 1, StepPart::backward) *= 3;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow rank: rank 1 (node 0)"));
}

TEST(Diagnosis, NamesThePartThatExplainsNearlyAllWhereAnotherOneStandsOutBesides) {
  Figures figures = even({.dp = 4});
  own(figures, 1, StepPart::input) *= 80;           // 790 us more
  own(figures, 1, StepPart::optimizer) = 155 * us;  // 105 us more
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow input: rank 1 (node 0)"));
  own(figures, 1, StepPart::optimizer) *= 3;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow rank: rank 1 (node 0)"));
}

// A scheduler holds processes that share their cores back by so much.
TEST(Diagnosis, BlamesNothingBetweenProcessesThatTheirSchedulerMayHaveDone) {
  const auto said_of = [](WorldKind world, std::int64_t times) {
    Figures figures = even({.dp = 4});
    figures.plan.world = world;
    own(figures, 2, StepPart::forward) += 190 * us * times;
    figures.ranks[3].per_file_change += 500 * us * times;
    own(figures, 3, StepPart::checkpoint) *= 6;
    figures.links.front().under_way += 50 * us * times;
    return said(diagnose(figures));
  };
  EXPECT_THAT(said_of(WorldKind::process, 3), IsEmpty());
  EXPECT_THAT(said_of(WorldKind::process, 7), SizeIs(3));
  EXPECT_THAT(said_of(WorldKind::sim, 3), SizeIs(3));
}

TEST(Diagnosis, NamesInputThatAllRanksWaitFor) {
  Figures figures = even({.dp = 4});
  for (int rank = 0; rank < 4; ++rank) own(figures, rank, StepPart::input) = 300 * us;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow input: all ranks"));
}

TEST(Diagnosis, NamesARankWhoseFileOperationsTakeLonger) {
  Figures figures = even({.dp = 4});
  figures.ranks[3].per_file_change *= 4;
  own(figures, 3, StepPart::checkpoint) *= 4;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow disk: rank 3 (node 1)"));
  // The coordinator's are dearer by nature.
  figures = even({.dp = 4});
  figures.ranks[0].per_file_change *= 4;
  own(figures, 0, StepPart::checkpoint) *= 4;
  EXPECT_THAT(said(diagnose(figures)), IsEmpty());
}

// A rank that is killed in each of its saves tells nothing of them, which is no time of zero.
TEST(Diagnosis, ComparesNobodyWithARankThatToldNothing) {
  Figures figures = even({.dp = 4});
  for (const int rank : {0, 1, 2}) {
    figures.ranks[static_cast<std::size_t>(rank)].saves = 0;
    figures.ranks[static_cast<std::size_t>(rank)].per_file_change = 0;
    own(figures, rank, StepPart::checkpoint) = 0;
  }
  EXPECT_THAT(said(diagnose(figures)), IsEmpty());
  figures.ranks[0].steps = figures.ranks[1].steps = 0;
  for (const int rank : {0, 1}) figures.ranks[static_cast<std::size_t>(rank)].parts = {};
  const Diagnosis diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), IsEmpty());
  EXPECT_THAT(to_text(diagnosis), HasSubstr("   1     0    0          -          -"));
  EXPECT_EQ(json_of(diagnosis)["ranks"][1]["forward"]["own"], nullptr);
  EXPECT_EQ(json_of(diagnosis)["ranks"][2]["file_operation"], nullptr);
  EXPECT_EQ(json_of(diagnosis)["ranks"][2]["forward"]["own"], 200 * us);
  own(figures, 2, StepPart::forward) *= 4;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow rank: rank 2 (node 1)"));
  EXPECT_THAT(said(diagnose(figures, even({.dp = 4}))), ElementsAre("slow rank: rank 2 (node 1)"));
}

TEST(Diagnosis, NamesOneLinkOrTheDeviceThatAllSlowLinksHaveInCommon) {
  Figures figures = even({.dp = 4});
  for (LinkFigures& link : figures.links) {
    if (link.rank == 1 && link.peer == 3) link.under_way = 300 * us;
  }
  Diagnosis diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), ElementsAre("slow link: link 1-3"));
  EXPECT_THAT(diagnosis.causes.front().ranks, ElementsAre(1, 3));
  for (LinkFigures& link : figures.links) {
    if (link.peer == 3) link.sending = 300 * us;
  }
  diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), ElementsAre("slow link: all links of rank 3 that are busy"));
  EXPECT_THAT(diagnosis.causes.front().ranks, ElementsAre(3));
}

TEST(Diagnosis, ComparesLinksOfOneKindOnly) {
  Figures figures = even({.dp = 2, .tp = 2});
  for (LinkFigures& link : figures.links) {
    if ((link.rank == 0 && link.peer == 1) || (link.rank == 2 && link.peer == 3)) {
      link.kind = 2;
      link.under_way = 400 * us;
    }
  }
  EXPECT_THAT(said(diagnose(figures)), IsEmpty());
}

TEST(Diagnosis, TellsAStageFromARankOfIt) {
  Figures figures = even({.dp = 2, .pp = 2});
  own(figures, 2, StepPart::backward) *= 4;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow rank: rank 2 (node 1)"));
  own(figures, 3, StepPart::backward) *= 4;
  const Diagnosis diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), ElementsAre("unbalanced stage: stage 1 (ranks 2, 3)"));
  EXPECT_EQ(diagnosis.next->variable, "layout.virtual_stages");
  figures.plan.job.model.layers = 2;
  EXPECT_EQ(diagnose(figures).next->variable, "layout.pp");
}

// Four stages of one rank each: there is no rank with the same work to compare with.
TEST(Diagnosis, NamesTheRankOfAStageOfOneWhereItsLayersDoNotExplainWhatItTakes) {
  Figures figures = even({.pp = 4});
  EXPECT_THAT(said(diagnose(figures)), IsEmpty());
  own(figures, 2, StepPart::backward) *= 6;
  const Diagnosis diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), ElementsAre("slow rank: rank 2 (node 1)"));
  EXPECT_EQ(diagnosis.next->variable, "node of rank 2");
  figures = even({.pp = 4});
  own(figures, 3, StepPart::backward) *= 6;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow rank: rank 3 (node 1)"));
  figures.plan.job.cluster.head = {.forward = std::chrono::milliseconds(1), .backward = std::chrono::milliseconds(3)};
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("unbalanced stage: stage 3 (rank 3)"));
}

TEST(Diagnosis, ExpectsOfAStageWhatItsLayersAndItsHeadTake) {
  Plan plan = even({.pp = 4}).plan;  // 100 and 300 us a segment; a layer has two
  EXPECT_DOUBLE_EQ(expected_work(plan, 1), 800e3);
  EXPECT_DOUBLE_EQ(expected_work(plan, 0), 1'200e3);
  EXPECT_DOUBLE_EQ(expected_work(plan, 3), 1'200e3);
  plan.layout = {.pp = 2, .virtual_stages = 2};
  EXPECT_DOUBLE_EQ(expected_work(plan, 1), 2'000e3);
  plan.world = WorldKind::process;
  plan.job.model.vocabulary = 1 << 20;
  EXPECT_GT(expected_work(plan, 1), 100 * expected_work(plan, 0));
}

TEST(Diagnosis, NamesTheNodeWhereAllItsRanksStandOutAlike) {
  Figures figures = even({.dp = 4});
  own(figures, 2, StepPart::forward) *= 4;
  own(figures, 3, StepPart::forward) *= 5;
  const Diagnosis diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), ElementsAre("slow rank: node 1 (ranks 2, 3)"));
  EXPECT_THAT(diagnosis.causes.front().ranks, ElementsAre(2, 3));
  EXPECT_EQ(diagnosis.causes.front().cost, 800 * us);  // the slower one's: they run side by side
  EXPECT_EQ(diagnosis.next->variable, "node of ranks 2, 3");
  EXPECT_EQ(diagnosis.next->now, "node 1");
  EXPECT_THAT(to_text(diagnosis), AllOf(HasSubstr("rank 2: forward 800.0 us"), HasSubstr("rank 3: forward 1.00 ms")));
  // One of another kind, or of another node: they stay apart.
  own(figures, 3, StepPart::forward) = 200 * us;
  own(figures, 3, StepPart::input) = 900 * us;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("slow input: rank 3 (node 1)", "slow rank: rank 2 (node 1)"));
}

TEST(Diagnosis, BlamesBucketsOnlyWhereThereAreManyAndTheyAreSmall) {
  Figures figures = even({.dp = 4, .bucket_bytes = 64});
  GroupFigures& dp = figures.groups.front();
  dp = {.name = "dp", .time = 400 * us, .calls = 20, .bytes = 20'000, .reductions = 20, .reduced_bytes = 20'000};
  const Diagnosis diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), ElementsAre("small buckets: group dp"));
  EXPECT_EQ(diagnosis.next->variable, "layout.bucket");
  EXPECT_EQ(diagnosis.next->now, "64");
  dp.reduced_bytes = 20 * 100'000;
  EXPECT_THAT(said(diagnose(figures)), IsEmpty());
  dp.reduced_bytes = 20'000;
  dp.reductions = 4;  // the others are parameters that are gathered
  EXPECT_THAT(said(diagnose(figures)), IsEmpty());
}

TEST(Diagnosis, NamesATpGroupThatLiesOnTwoNodes) {
  Figures figures = even({.dp = 2, .tp = 2});
  figures.groups.push_back({.name = "tp", .time = 400 * us, .calls = 40, .bytes = 40'000});
  EXPECT_THAT(said(diagnose(figures)), IsEmpty());
  figures.plan.job.cluster.ranks_per_node = 1;
  EXPECT_THAT(said(diagnose(figures)), ElementsAre("spread group: group tp"));
}

TEST(Diagnosis, PutsFirstWhatCostsMost) {
  Figures figures = even({.dp = 4});
  own(figures, 0, StepPart::forward) *= 4;
  own(figures, 2, StepPart::backward) *= 4;
  const Diagnosis diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), ElementsAre("slow rank: rank 2 (node 1)", "slow rank: rank 0 (node 0)"));
  EXPECT_EQ(diagnosis.next->variable, "node of rank 2");
}

TEST(Diagnosis, SuggestsMoreMicroBatchesForAPipelineThatIsIdleWithoutBlame) {
  Figures figures = even({.dp = 2, .pp = 2});
  figures.idle_in_pipeline = 0.4;
  const Diagnosis diagnosis = diagnose(figures);
  EXPECT_THAT(said(diagnosis), IsEmpty());
  EXPECT_EQ(diagnosis.next->variable, "batch.accumulation");
  EXPECT_THAT(diagnosis.next_why, HasSubstr("40 %"));
}

TEST(Diagnosis, SuggestsToKeepMoreWhereAttentionRunsAgain) {
  Figures figures = even({.dp = 4, .recompute = Recompute::layer});
  EXPECT_FALSE(diagnose(figures).next);
  for (int rank = 0; rank < 4; ++rank) own(figures, rank, StepPart::backward) = 900 * us;
  EXPECT_EQ(diagnose(figures).next->variable, "layout.recompute");
}

TEST(Diagnosis, ComparesRunsOfOneWorldAndOneModelOnly) {
  const Plan now = even({.dp = 4}).plan;
  Plan other = even({.dp = 2, .tp = 2}).plan;
  EXPECT_TRUE(comparable(now, other));
  other.world = WorldKind::process;
  other.job.model.layers = 12;
  const Status refused = comparable(now, other);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("job.model.layers is 4 in the one and 12 in the other"), HasSubstr("world is")));
}

TEST(Diagnosis, NamesAsGrownBetweenProcessesOnlyWhatTheirSchedulerDidNotDo) {
  const auto said_of = [](WorldKind world, std::int64_t more) {
    Figures before = even({.dp = 4});
    before.plan.world = world;
    Figures now = before;
    for (int rank = 0; rank < 4; ++rank) own(now, rank, StepPart::forward) += more;
    return said(diagnose(now, before));
  };
  EXPECT_THAT(said_of(WorldKind::process, 900 * us), IsEmpty());
  EXPECT_THAT(said_of(WorldKind::sim, 900 * us), ElementsAre("grown: forward"));
  EXPECT_THAT(said_of(WorldKind::process, 1'100 * us), ElementsAre("grown: forward"));
}

TEST(Diagnosis, OfARunWithoutAStepSaysSo) {
  EXPECT_THAT(to_text(diagnose(Figures{})), HasSubstr("no rank completed a step"));
}

// A link that is slow by the byte is slow where messages are large, and a step may have more phases with small ones.
TEST(Figures, ALinkIsTimedOverAllItsMessagesAndNotByThePhaseWithTheFastest) {
  Tables tables;
  History history(tables);
  const auto tell = [&](int rank, Phase phase, std::string_view way, std::int64_t each, std::int64_t messages) {
    history.append({.kind = EventKind::exchanged,
                    .phase = phase,
                    .rank = static_cast<std::int16_t>(rank),
                    .attempt = 1,
                    .step = 1,
                    .b = each * messages,
                    .c = messages,
                    .name = tables.names.intern(link_group),
                    .detail = tables.names.intern(fmt::format("{} {}", way, 1 - rank))});
  };
  history.append({.kind = EventKind::attempt_started, .attempt = 1});
  for (const int rank : {0, 1}) {
    history.append({.kind = EventKind::step_done, .rank = static_cast<std::int16_t>(rank), .attempt = 1, .step = 1});
    history.append({.kind = EventKind::time_spent,
                    .rank = static_cast<std::int16_t>(rank),
                    .attempt = 1,
                    .step = 1,
                    .a = 900 * us,
                    .name = tables.names.intern("forward")});
    for (const std::string_view way : {"to", "from"}) {
      tell(rank, Phase::backward, way, 500 * us, 30);
      tell(rank, Phase::exchange, way, 20 * us, 10);
    }
  }
  Plan plan;
  plan.job.lanes.dp = 2;
  plan.layout.dp = 2;
  // Without its end it is a history that was cut off in its last step.
  const Figures cut = figures_of(history, plan);
  EXPECT_TRUE(cut.ends_early);
  EXPECT_EQ(cut.steps, 0);
  EXPECT_THAT(cut.links, IsEmpty());
  EXPECT_THAT(to_text(diagnose(cut)), HasSubstr("the history ends before the run did"));
  history.append({.kind = EventKind::run_ended, .attempt = 1, .a = 1});
  const Figures figures = figures_of(history, plan);
  EXPECT_FALSE(figures.ends_early);
  ASSERT_THAT(figures.links, SizeIs(1));
  EXPECT_EQ(figures.links.front().sending, 380 * us);
  EXPECT_EQ(figures.links.front().under_way, 380 * us);
}

TEST(Figures, TypicalIsTheLowerQuartileAndOfFewTheLeast) {
  std::vector<std::int64_t> samples = {9, 8, 7};
  EXPECT_EQ(typical_of(samples), 7);
  samples.clear();
  for (int i = 1; i <= 20; ++i) samples.push_back(i);
  EXPECT_EQ(typical_of(samples), 5);
  EXPECT_EQ(median_of(samples), 10);
  EXPECT_EQ(typical_of({}), 0);
}

}  // namespace
}  // namespace firedrill
