// The harness tells a failed property, a run that cannot be judged and an engine that varies from each other.
#include "harness/run/canaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/mutants/mutants.h"
#include "harness/run/test_runs.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

TEST(Canaries, AreEachReportedAsWhatTheyAre) {
  Session session({.golden_directory = "golden"});
  const Result<std::vector<Canary>> canaries = fly_canaries(session, quiet_nano());
  ASSERT_TRUE(canaries) << describe(canaries.error());
  ASSERT_EQ(canaries->size(), 3U);
  for (const Canary& canary : *canaries) EXPECT_TRUE(canary.alive()) << canary.name << ": " << canary.reported;
  EXPECT_THAT((*canaries)[0].evidence, HasSubstr("canary_always_fails"));
  EXPECT_THAT((*canaries)[1].evidence, HasSubstr("did not fire"));
}

TEST(Canaries, ARightEngineRepeatsAndOneThatVariesDoesNot) {
  Session session({.golden_directory = "golden"});
  Plan plan = quiet_nano();
  EXPECT_TRUE(*repeats(session, plan));
  plan.mutant = "canary_nondeterministic";
  EXPECT_FALSE(*repeats(session, plan));
  EXPECT_EQ(must_run(session, plan).verdict, RunVerdict::pass) << "by itself it does nothing wrong";
}

TEST(Canaries, AreNoMutants) {
  for (const Mutant& canary : canary_engines()) {
    for (const Mutant& mutant : mutants()) EXPECT_NE(mutant.name, canary.name);
    EXPECT_EQ(find_mutant(canary.name), &canary);
  }
}

}  // namespace
}  // namespace firedrill
