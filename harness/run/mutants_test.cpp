// The mutants against the checks: each does what it should as long as nothing disturbs it, and is caught when something
// does; the right engine survives the same.
#include <gtest/gtest.h>

#include <set>

#include "engine/base/check.h"
#include "harness/mutants/mutants.h"
#include "harness/run/hunt.h"
#include "harness/run/random_faults.h"
#include "harness/run/test_runs.h"

namespace firedrill {
namespace {

std::vector<const Mutant*> wrong_protocols() {
  std::vector<const Mutant*> list;
  for (const Mutant& mutant : mutants()) {
    if (mutant.name.starts_with("protocol_")) list.push_back(&mutant);
  }
  return list;
}

// What the run shows by itself, without a look at each moment what a crash would leave.
void expect_it_ends_well(const Mutant& mutant, Plan plan) {
  Session session({.probes = false});
  plan.mutant = mutant.name;
  prepare_job(mutant.name, plan.job);
  const Result<RunReport> report = session.run(plan);
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_EQ(report->final_digest, report->golden_digest) << mutant.name << ": " << report->reason;
  for (const PropertyLine& property : report->properties) {
    // Names that are used again are there to be seen without a crash.
    if (mutant.name == "protocol_overwrite_in_place" && property.name == "one_provenance") continue;
    EXPECT_EQ(property.verdict, "pass") << mutant.name << ": " << property.name << ": " << property.evidence;
  }
}

TEST(Mutants, AWrongProtocolEndsEqualToTheGoldenWhereNothingDisturbsIt) {
  for (const Mutant* mutant : wrong_protocols()) expect_it_ends_well(*mutant, quiet_nano());
}

TEST(Mutants, AWrongProtocolSurvivesAKillBetweenTwoSaves) {
  Plan plan = quiet_nano();
  plan.faults = {FaultSpec{.kind = FaultKind::kill, .at = {.rank = 1, .step = 8, .phase = Phase::backward}}};
  plan.recovery.budget = 1;
  for (const Mutant* mutant : wrong_protocols()) expect_it_ends_well(*mutant, plan);
}

bool fails(const Session& session, const Hunt& hunt, std::string_view property) {
  if (property == "liveness") return hunt.verdict == RunVerdict::liveness;
  for (const Judged& each : judge_all(Case(session.history(), hunt.plan))) {
    if (each.property->name == property) return each.verdict.outcome == Outcome::fail;
  }
  return false;
}

TEST(Mutants, EachIsCaughtAndAtLastByThePropertyThatIsThereForIt) {
  constexpr std::uint64_t seeds = 1000;
  Session session({.golden_directory = "golden"});
  for (const Mutant& mutant : mutants()) {
    const Result<Ground> ground = ground_for(mutant.preparation, quiet_nano(), "scenarios/jobs");
    ASSERT_TRUE(ground) << describe(ground.error());
    std::uint64_t seed = 1;
    bool named = false;
    while (!named && seed <= seeds) {
      const Result<Hunt> found = hunt(session, {*ground}, mutant.name, seed, static_cast<std::int64_t>(seeds));
      ASSERT_TRUE(found) << describe(found.error());
      ASSERT_TRUE(found->caught) << mutant.name << " survives from seed " << seed;
      named = fails(session, *found, mutant.caught_by);
      seed = found->plan.seed + 1;
    }
    EXPECT_TRUE(named) << mutant.name << " is never caught by " << mutant.caught_by;
  }
}

// A few plans on each ground; `firedrill mutants` runs as many as any mutant there needed.
TEST(Mutants, TheRightEngineSurvivesWhatCatchesThem) {
  std::vector<const Mutant*> all;
  for (const Mutant& mutant : mutants()) all.push_back(&mutant);
  const Result<std::vector<Ground>> grounds = grounds_for(all, quiet_nano(), "scenarios/jobs");
  ASSERT_TRUE(grounds) << describe(grounds.error());
  Session session({.golden_directory = "golden"});
  const Result<Hunt> found = hunt(session, *grounds, "", 1, 25);
  ASSERT_TRUE(found) << describe(found.error());
  EXPECT_FALSE(found->caught) << "seed " << found->plan.seed << ": " << found->property << ": " << found->evidence;
}

TEST(Mutants, RandomFaultsFireOfEveryKindThatIsDrawn) {
  Session session({});
  std::set<FaultKind> drawn;
  std::set<FaultKind> fired;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const Plan plan = random_faults(quiet_nano(), seed);
    ASSERT_TRUE(session.trial(plan));
    for (const FaultSpec& fault : plan.faults) drawn.insert(fault.kind);
    for (const std::uint32_t position : session.history().of(EventKind::fault_fired)) {
      fired.insert(plan.faults[static_cast<std::size_t>(session.history()[position].a)].kind);
    }
  }
  EXPECT_GE(drawn.size(), 17U);
  for (const FaultKind kind : drawn) EXPECT_TRUE(fired.contains(kind)) << to_string(kind) << " never fires";
}

}  // namespace
}  // namespace firedrill
