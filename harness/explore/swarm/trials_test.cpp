#include "harness/explore/swarm/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/explore/swarm/test_base.h"
#include "harness/history/lines.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

class Trials : public testing::Test {
 protected:
  Trials() {
    std::string name = (fs::temp_directory_path() / "firedrill-trials-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    options_.session.golden_directory = "golden";
    options_.swarm.variants_max = 2;
    options_.swarm.weights = only_kinds({FaultKind::kill, FaultKind::io_error, FaultKind::no_space});
  }
  ~Trials() override { fs::remove_all(folder_); }

  TrialsResult must_run(const Plan& base, PlanCorpus* corpus = nullptr) {
    Result<TrialsResult> result = run_trials(base, options_, corpus, {});
    FD_CHECK(static_cast<bool>(result), "{}", describe(result.error()));
    return *std::move(result);
  }
  PlanCorpus must_open(const std::string& name) {
    Result<PlanCorpus> corpus = PlanCorpus::open(folder_ / name);
    FD_CHECK(static_cast<bool>(corpus), "{}", describe(corpus.error()));
    return *std::move(corpus);
  }

  fs::path folder_;
  TrialsOptions options_;
};

TEST_F(Trials, TheRightEngineSurvivesAndTheNumberOfThreadsChangesNothing) {
  options_.trials = 60;
  const TrialsResult one = must_run(nano_base());
  options_.jobs = 2;
  const TrialsResult two = must_run(nano_base());
  EXPECT_EQ(one.failures, 0U) << (one.kept.empty() ? "" : one.kept.front().evidence);
  EXPECT_EQ(one.trials, 60U);
  EXPECT_EQ(one.doubled, 3U);
  EXPECT_EQ(one.planned, two.planned);
  EXPECT_EQ(one.fired, two.fired);
  EXPECT_EQ(one.coverage.distinct_histories(), two.coverage.distinct_histories());
  EXPECT_EQ(one.coverage.features(), two.coverage.features());
}

TEST_F(Trials, ShardsTogetherAreTheWhole) {
  options_.trials = 30;
  const TrialsResult whole = must_run(nano_base());
  options_.shards = 2;
  std::uint64_t trials = 0;
  std::uint64_t planned = 0;
  for (options_.shard = 0; options_.shard < 2; ++options_.shard) {
    const TrialsResult part = must_run(nano_base());
    trials += part.trials;
    planned += part.planned;
  }
  EXPECT_EQ(trials, whole.trials);
  EXPECT_EQ(planned, whole.planned);
}

TEST_F(Trials, AMutantFailsAndItsFailureIsKeptSoThatItCanBeReplayed) {
  options_.trials = 60;
  options_.failures = folder_ / "failures";
  options_.failures_max = 1;
  Plan base = nano_base();
  base.mutant = "protocol_largest_directory";
  const TrialsResult result = must_run(base);
  ASSERT_GT(result.failures, 0U);
  ASSERT_EQ(result.kept.size(), 1U);
  const TrialFailure& failure = result.kept.front();
  EXPECT_FALSE(failure.property.empty());
  const Result<Plan> plan = read_plan(failure.directory / "plan.json");
  ASSERT_TRUE(plan) << describe(plan.error());
  Session session(options_.session);
  ASSERT_TRUE(session.trial(*plan));
  Tables tables;
  History kept(tables);
  ASSERT_TRUE(load_history((failure.directory / "history.jsonl").string(), kept));
  EXPECT_EQ(kept.digest(), session.history().digest());
}

TEST_F(Trials, TheCorpusIsThereForALaterExplorationWhichReachesNothingNewWithTheSamePlans) {
  options_.trials = 40;
  std::size_t plans = 0;
  {
    PlanCorpus corpus = must_open("corpus");
    plans = must_run(nano_base(), &corpus).corpus_plans;
    EXPECT_GT(plans, 0U);
  }
  PlanCorpus corpus = must_open("corpus");
  EXPECT_EQ(corpus.plans().size(), plans);
  options_.trials = 1;
  options_.first = 2;  // one that is drawn, not mutated
  const TrialsResult again = must_run(nano_base(), &corpus);
  EXPECT_EQ(again.corpus_plans, plans);
  EXPECT_GT(again.coverage.reached().size(), 1U) << "what was reached before counts";
}

TEST_F(Trials, OneCorpusIsOpenOnce) {
  const PlanCorpus corpus = must_open("corpus");
  EXPECT_THAT(PlanCorpus::open(folder_ / "corpus").error().hint, testing::HasSubstr("one exploration at a time"));
}

TEST_F(Trials, AStopEndsThemBeforeTheNextTrial) {
  const std::atomic<bool> stop = true;
  options_.stop = &stop;
  const TrialsResult result = must_run(nano_base());
  EXPECT_EQ(result.trials, 0U);
  EXPECT_TRUE(result.stopped);
}

}  // namespace
}  // namespace firedrill
