// Causes planted in real runs are named first, and clean runs accuse nobody. planted_bench does the same for more
// seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "harness/diagnose/planted.h"

namespace firedrill {
namespace {

// `steps`: 0 for those of the job.
void expect_named(Session& session, CauseKind cause, WorldKind world, std::uint64_t seed, int steps = 0) {
  planted::Planted planted = planted::draw(cause, world, seed);
  if (steps > 0) planted.plan.job.steps = steps;
  planted.plan.run_id = run_id_of(planted.plan.job);
  const Diagnosis diagnosis = planted::run_and_diagnose(session, planted.plan);
  EXPECT_TRUE(planted::names(diagnosis, cause, planted.ranks))
      << to_string(cause) << " at ranks " << testing::PrintToString(planted.ranks) << ", seed " << seed << "\n"
      << to_text(diagnosis);
}

TEST(Planted, EachCauseIsNamedFirstInTheSimWorld) {
  Session session({.golden_directory = "golden"});
  for (const CauseKind cause : planted::causes) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) expect_named(session, cause, WorldKind::sim, seed);
  }
}

// The other kinds and whole runs are the bench's: a step takes a tenth of a second or more.
TEST(Planted, ASlowRankIsNamedFirstAmongProcesses) {
  Session session({.golden_directory = "golden"});
  expect_named(session, CauseKind::slow_rank, WorldKind::process, 1, 4);
}

TEST(Planted, ASlowLinkIsNamedFirstAmongProcesses) {
  Session session({.golden_directory = "golden"});
  expect_named(session, CauseKind::slow_link, WorldKind::process, 1, 6);
}

TEST(Planted, NothingStandsOutInCleanRuns) {
  Session session({.golden_directory = "golden"});
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Diagnosis diagnosis = planted::run_and_diagnose(session, planted::clean(WorldKind::sim, seed));
    EXPECT_TRUE(diagnosis.causes.empty()) << "seed " << seed << "\n" << to_text(diagnosis);
    EXPECT_GT(diagnosis.figures.step, 0);
  }
}

TEST(Planted, NothingStandsOutAmongProcesses) {
  Session session({.golden_directory = "golden"});
  const Diagnosis diagnosis = planted::run_and_diagnose(session, planted::clean(WorldKind::process, 5));
  EXPECT_TRUE(diagnosis.causes.empty()) << to_text(diagnosis);
  EXPECT_GT(diagnosis.figures.step, 0);
}

Plan plan_of(const std::string& file) {
  Loaded<Scenario> scenario = load_scenario(file);
  FD_CHECK(static_cast<bool>(scenario), "{}", scenario.mistakes.empty() ? file : scenario.mistakes.front());
  Plan plan = make_plan(*scenario);
  plan.accounting = true;
  return plan;
}

// A rank that dies behind its training, in a save, leaves no account of the step.
TEST(Planted, NothingStandsOutInDrillsThatKill) {
  Session session({.golden_directory = "golden"});
  std::vector<std::string> files = {"scenarios/quickstart.yaml"};
  for (const auto& entry : std::filesystem::directory_iterator("scenarios/rank")) {
    const std::string name = entry.path().filename().string();
    if (name.find("kill") != std::string::npos) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 9U);
  for (const std::string& file : files) {
    const Diagnosis diagnosis = planted::run_and_diagnose(session, plan_of(file));
    EXPECT_TRUE(diagnosis.causes.empty()) << file << "\n" << to_text(diagnosis);
    EXPECT_GT(diagnosis.figures.steps, 0) << file;
  }
}

FaultSpec kill_in_save(int rank, int attempt, int step) {
  FaultSpec kill{.kind = FaultKind::kill, .at = {.attempt = attempt, .rank = rank, .step = step, .phase = Phase::save}};
  kill.at.op = SeamOp::file;
  kill.at.file_op = FileOp::write;
  return kill;
}

TEST(Planted, NobodyIsNamedInAShortRunWhoseOtherRankIsKilledInItsSaves) {
  Session session({.golden_directory = "golden"});
  Plan plan = planted::quiet("nano", {.dp = 2}, WorldKind::sim, 1);
  plan.job.steps = 4;
  plan.job.checkpoint.every = 1;
  plan.run_id = run_id_of(plan.job);
  plan.recovery.budget = 3;
  plan.faults = {kill_in_save(1, 1, 1), kill_in_save(1, 2, 1)};
  const Diagnosis diagnosis = planted::run_and_diagnose(session, plan);
  EXPECT_TRUE(diagnosis.causes.empty()) << to_text(diagnosis);
}

TEST(Planted, ACauseIsNamedFirstThoughItsRankIsKilledInItsSaves) {
  Session session({.golden_directory = "golden"});
  for (const CauseKind cause : {CauseKind::slow_rank, CauseKind::slow_input, CauseKind::slow_disk}) {
    for (const std::uint64_t seed : {1U, 2U}) {
      planted::Planted planted = planted::draw(cause, WorldKind::sim, seed);
      const int every = std::max(1, planted.plan.job.checkpoint.every);
      planted.plan.recovery.budget = 3;
      planted.plan.faults.push_back(kill_in_save(planted.ranks.front(), 1, every));
      planted.plan.faults.push_back(kill_in_save(planted.ranks.front(), 2, every));
      const Diagnosis diagnosis = planted::run_and_diagnose(session, planted.plan);
      EXPECT_TRUE(planted::names(diagnosis, cause, planted.ranks))
          << to_string(cause) << " at rank " << planted.ranks.front() << ", seed " << seed << "\n"
          << to_text(diagnosis);
    }
  }
}

// A step in buckets of one segment costs what it is planted for: the exchange is four times as dear as in one go.
TEST(Planted, SmallBucketsMakeTheExchangeFourTimesAsDear) {
  Session session({.golden_directory = "golden"});
  planted::Planted planted = planted::draw(CauseKind::small_buckets, WorldKind::sim, 1);
  const auto time_of_dp = [&](const Plan& plan) {
    const Diagnosis diagnosis = planted::run_and_diagnose(session, plan);
    for (const GroupFigures& group : diagnosis.figures.groups) {
      if (group.name == "dp") return group.time;
    }
    return std::int64_t{0};
  };
  const std::int64_t small = time_of_dp(planted.plan);
  planted.plan.layout.bucket_bytes = 0;
  EXPECT_GE(small, 4 * time_of_dp(planted.plan));
}

TEST(Planted, StorageThatIsSlowForAllIsFoundAgainstAnotherRun) {
  Session session({.golden_directory = "golden"});
  Plan plan = planted::clean(WorldKind::sim, 0);
  const Figures before = planted::run_and_diagnose(session, plan).figures;
  plan.job.cluster.file_sync *= 4;
  const Figures now = planted::run_and_diagnose(session, plan).figures;
  const Diagnosis alone = diagnose(now);
  EXPECT_TRUE(alone.causes.empty()) << to_text(alone);
  const Diagnosis compared = diagnose(now, before);
  ASSERT_FALSE(compared.causes.empty());
  EXPECT_EQ(compared.causes.front().kind, CauseKind::grown);
  EXPECT_EQ(compared.causes.front().where, "checkpoint");
  ASSERT_EQ(compared.told.size(), 1U);
  EXPECT_EQ(compared.next->variable, "job.cluster.file_sync");
  EXPECT_TRUE(diagnose(now, now).causes.empty());
}

}  // namespace
}  // namespace firedrill
