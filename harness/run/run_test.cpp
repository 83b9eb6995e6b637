#include "harness/run/run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/mutants/mutants.h"
#include "harness/run/layout_drill.h"
#include "harness/run/random_kills.h"
#include "harness/run/test_runs.h"
#include "harness/world/process_world.h"

namespace firedrill {
namespace {

TEST(Run, TheQuickStartEndsEqualToTheGolden) {
  Session session({});
  const Result<RunReport> report = session.run(plan_of("scenarios/quickstart.yaml"));
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_EQ(report->verdict, RunVerdict::pass) << report->reason;
  EXPECT_EQ(report->final_digest, report->golden_digest);
  EXPECT_EQ(report->fired.size(), 3U);
  EXPECT_EQ(report->attempts.size(), 4U);
  for (const PropertyLine& property : report->properties) EXPECT_EQ(property.verdict, "pass") << property.name;
}

TEST(Run, NeitherHistoryNorDigestDependOnTheMemo) {
  Session with({});
  Session without({.memo = false});
  const Plan plan = plan_of("scenarios/quickstart.yaml");
  must_run(with, plan);  // fills the memo
  EXPECT_EQ(must_run(with, plan, true).history, must_run(without, plan, true).history);
}

TEST(Run, OneSessionServesBothCatalogsOfAJob) {
  Session session({});
  Plan plan = plan_of("scenarios/quickstart.yaml");
  for (const CatalogKind catalog : {CatalogKind::files, CatalogKind::rocksdb, CatalogKind::files}) {
    plan.job.checkpoint.catalog = catalog;
    const Trial trial = must_run(session, plan);
    EXPECT_EQ(trial.verdict, RunVerdict::pass) << complaint(plan, trial);
  }
}

TEST(Run, ASessionThatForgetsItsWordsGivesTheSameHistoriesAndStaysSmall) {
  Session keeps({});
  Session forgets({.words_max = 200});
  std::size_t most = 0;
  std::size_t all = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Plan plan = random_kills(quiet_nano(), seed);
    EXPECT_EQ(must_run(keeps, plan, true).history, must_run(forgets, plan, true).history) << "seed " << seed;
    most = std::max(most, static_cast<std::size_t>(forgets.history().tables().probes.size()));
    all = static_cast<std::size_t>(keeps.history().tables().probes.size());
  }
  EXPECT_LT(most, all / 2) << "what one run needs, and not what all need";
}

// What a probe has answered for one layout's checkpoints is taken for those of all others; damaged ones stay apart.
TEST(Run, ASessionThatKnowsOtherLayoutsGivesTheSameHistories) {
  Session knows({});
  Session forgets({.words_max = 1});
  Plan base = quiet_nano();
  const std::vector<Layout> layouts = drill_layouts(base.job, 4);
  std::size_t damaged = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    base.layout = layouts[seed % layouts.size()];
    base.recovery.layout = layouts[seed * 7 / 3 % layouts.size()];
    base.job.checkpoint.catalog = seed % 4 < 2 ? CatalogKind::files : CatalogKind::rocksdb;
    Plan plan = random_kills(base, seed);
    if (seed % 3 == 0) {
      const Where at{.attempt = 1, .rank = 0, .step = 4, .phase = Phase::validate, .when = When::after};
      plan.faults.push_back({.kind = FaultKind::bit_flip_at_rest, .at = at, .may_not_fire = true});
    }
    const Digest expected = must_run(forgets, plan, true).history;
    for (const ProbeView view : {ProbeView::processes_die, ProbeView::power_fails}) {
      damaged +=
          static_cast<std::size_t>(std::ranges::any_of(forgets.history().of(EventKind::probe), [&](std::uint32_t i) {
            const ProbeResult& result = forgets.history().probe(forgets.history()[i]);
            return result.view == view &&
                   std::ranges::any_of(result.seen, [](const SeenCheckpoint& one) { return !one.intact; });
          }));
    }
    ASSERT_EQ(must_run(knows, plan, true).history, expected) << "seed " << seed;
  }
  EXPECT_GT(damaged, 10U) << "some checkpoints must be seen damaged";
}

TEST(Run, AThousandSchedulerSeedsGiveTheSameHistoryTwiceEach) {
  Session session({});
  Plan plan = plan_of("scenarios/quickstart.yaml");
  std::set<Digest> distinct;
  for (plan.seed = 1; plan.seed <= 1000; ++plan.seed) {
    const Trial first = must_run(session, plan, true);
    const Trial second = must_run(session, plan, true);
    ASSERT_EQ(first.history, second.history) << "seed " << plan.seed;
    ASSERT_EQ(first.verdict, RunVerdict::pass) << complaint(plan, first);
    distinct.insert(first.history);
  }
  EXPECT_GT(distinct.size(), 990U) << "other seeds must give other interleavings";
}

// Kills one rank at the nth seam call of a phase, for every n until the fault no longer fires. Returns how many fired.
int kill_everywhere(Session& session, Plan plan, int rank, Phase phase, When when, FaultKind kind) {
  for (int nth = 1;; ++nth) {
    FaultSpec kill{.kind = kind,
                   .at = {.attempt = 1, .rank = rank, .step = 4, .phase = phase, .nth = nth, .when = when}};
    kill.lose_unsynced_data = kill.lose_unsynced_names = kind == FaultKind::kill_node;
    kill.may_not_fire = true;
    plan.faults = {kill};
    const Trial trial = must_run(session, plan);
    if (trial.verdict != RunVerdict::pass) ADD_FAILURE() << complaint(plan, trial);
    if (trial.faults_fired == 0) return nth - 1;
    if (nth > 500) ADD_FAILURE() << "the fault fires without end";
    if (nth > 500) return nth;
  }
}

TEST(Run, AKillAtEverySeamCallOfOnePublishIsSurvived) {
  Session session({});
  const Plan plan = quiet_nano();
  int positions = 0;
  for (const FaultKind kind : {FaultKind::kill, FaultKind::kill_node}) {
    for (int rank = 0; rank < 4; ++rank) {
      for (const Phase phase : {Phase::save, Phase::commit, Phase::validate, Phase::retire}) {
        for (const When when : {When::before, When::after})
          positions += kill_everywhere(session, plan, rank, phase, when, kind);
      }
    }
  }
  RecordProperty("positions", positions);
  EXPECT_GT(positions, 200);
}

TEST(Run, TwoHundredSeedsOfRandomKillsAreSurvived) {
  Session session({});
  const Plan base = quiet_nano();
  int fired = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Plan plan = random_kills(base, seed);
    const Trial trial = must_run(session, plan);
    fired += trial.faults_fired;
    EXPECT_EQ(trial.verdict, RunVerdict::pass) << complaint(plan, trial);
  }
  EXPECT_GT(fired, 150) << "most drawn kills must be reached";
}

TEST(Run, TwentyRunsOfRealProcessesWithDrawnKillsEndEqualToTheGolden) {
  EXPECT_GE(survive_drawn_kills_of_processes(quiet_nano(), 20), 15U) << "most drawn kills must be reached";
}

TEST(Run, ARunThatIsKilledTooOftenNamesWhatItWaitsFor) {
  Session session({});
  Plan plan = quiet_nano();
  FaultSpec kill{.kind = FaultKind::kill,
                 .at = {.attempt = std::nullopt, .rank = 0, .step = 1, .phase = Phase::forward}};
  kill.times = 0;
  plan.faults = {kill};
  plan.recovery.budget = 2;
  const Result<RunReport> report = session.run(plan);
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_EQ(report->verdict, RunVerdict::liveness);
  EXPECT_NE(report->reason.find("restart budget of 2"), std::string::npos) << report->reason;
}

}  // namespace
}  // namespace firedrill

// The same program also is the zygote of the process world.
int main(int argc, char** argv) {
  firedrill::pin_numerics();
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb)
    return firedrill::zygote_main(argc, argv,
                                  {firedrill::make_protocol, firedrill::make_publisher, firedrill::make_rules});
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
