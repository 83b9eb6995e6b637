#include "harness/explore/crashcheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/explore/second_loss.h"
#include "harness/explore/test_subject.h"
#include "harness/mutants/mutants.h"
#include "harness/world/sim_world.h"
#include "harness/world/supervisor.h"

namespace firedrill {
namespace {

const std::vector<std::string> two_ranks = {"layout.dp=2"};

TEST(Recording, ASettledTraceHoldsThePastAsItsBaseAndOnlyThePresentAsOperations) {
  const auto subject = subject_of("one_publish");
  const auto cases = recorded(*subject, spec_of("one_publish"));
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_EQ(cases.front().required->step, 2);
  EXPECT_TRUE(cases.front().certain.empty());
  for (const crash::Operation& operation : cases.front().trace.operations) EXPECT_EQ(operation.step, 4);
  const auto holds = [&](const std::string& path) {
    return std::ranges::any_of(cases.front().trace.base, [&](const auto& entry) { return entry.path == path; });
  };
  EXPECT_TRUE(holds("validated/2-1-1"));
  EXPECT_TRUE(holds("shards/2-1-1/model-3"));
  EXPECT_FALSE(holds("tmp/2-1-1"));
  EXPECT_FALSE(holds("shards/4-1-1"));
}

// The digest of all that a run does, its times included.
Digest history_of_run(const ExploreSubject& subject, crash::Recorder* recorder) {
  Tables tables;
  History history(tables);
  Prober prober(make_protocol({}), subject.plan().job, subject.identity(), tables);
  SimResources resources;
  const Subject run = subject.to_run(subject.plan());
  SimWorld world(resources, run, prober, history, {.recorder = recorder});
  const auto outcome = supervise(subject.plan(), world, world.observer(), history);
  FD_CHECK(outcome && outcome->finished, "the run did not finish");
  return history.digest();
}

TEST(Recording, ARunIsTheSameWithAndWithoutTheRecorder) {
  for (const std::string catalog : {"files", "rocksdb"}) {
    const auto subject = subject_of("one_publish", {"layout.dp=2", "job.checkpoint.catalog=" + catalog});
    crash::Recorder recorder({});
    EXPECT_EQ(history_of_run(*subject, nullptr), history_of_run(*subject, &recorder)) << catalog;
    EXPECT_GT(recorder.trace().operations.size(), 50U);
  }
}

TEST(Recording, ARunIsRecordedTheSameTwice) {
  const auto subject = subject_of("one_publish", two_ranks);
  const auto first = record_run(*subject, subject->plan());
  const auto second = record_run(*subject, subject->plan());
  ASSERT_TRUE(first && second);
  ASSERT_EQ(first->trace.operations.size(), second->trace.operations.size());
  for (std::size_t i = 0; i < first->trace.operations.size(); ++i) {
    EXPECT_EQ(crash::describe(first->trace, static_cast<crash::OperationId>(i)),
              crash::describe(second->trace, static_cast<crash::OperationId>(i)));
  }
}

TEST(Crashcheck, EveryKillBehindAnOperationIsACaseWithARecoveryInIt) {
  const auto subject = subject_of("crash_in_recovery", two_ranks);
  const auto cases = recorded(*subject, spec_of("crash_in_recovery"));
  EXPECT_GT(cases.size(), 30U);
  for (const CrashCase& one : cases) {
    EXPECT_EQ(one.attempts, 2);
    EXPECT_FALSE(one.certain.empty());
    EXPECT_LT(one.certain.size(), one.trace.operations.size());
  }
}

TEST(Crashcheck, RecoveriesBehindAKillPassInEveryProfile) {
  const auto subject = subject_of("crash_in_recovery", two_ranks);
  for (const auto profile : {crash::ProfileKind::posix, crash::ProfileKind::ext4, crash::ProfileKind::nfs}) {
    const CrashCheckResult result =
        checked(*subject, spec_of("crash_in_recovery"), {.profile = profile, .engine = EngineKind::lazy});
    EXPECT_TRUE(result.complete);
    EXPECT_EQ(result.violations, 0U) << (result.story ? result.story->what : "");
    EXPECT_GT(result.checked, result.cases);
  }
}

TEST(Crashcheck, ASecondLossInTheRecoveryFromTheFirstPasses) {
  const auto subject = subject_of("crash_twice", two_ranks);
  const CrashCheckResult once = checked(*subject, {.step = 4}, {.engine = EngineKind::lazy});
  const CrashCheckResult twice = checked(*subject, spec_of("crash_twice"), {.engine = EngineKind::lazy});
  EXPECT_TRUE(twice.complete);
  EXPECT_EQ(twice.violations, 0U);
  EXPECT_EQ(twice.cases, 1 + once.checked);
  EXPECT_GT(twice.checked, once.checked);
}

// A leaf of the only case of crash_twice with two ranks, by the time its recovery ends.
FirstLoss some_leaf(const crash::CrashSpace& space, const CheckSubject& subject, const CrashCase& one) {
  std::optional<FirstLoss> last;
  explore_lazily(space, subject, {.required = one.required, .on_leaf = [&](crash::Partial& leaf, const CheckAnswer&) {
                                    last = FirstLoss::of(leaf);
                                  }});
  FD_CHECK(last.has_value(), "no leaf");
  return *last;
}

TEST(Crashcheck, WhatTheFirstRecoveryLeftOpenIsNotedAndMustNotBeReadByTheSecond) {
  const auto subject = subject_of("crash_twice", two_ranks);
  const CrashSpec once{.step = 4};
  const CrashCase one = recorded(*subject, once).front();
  const auto space = space_of(one);
  const CheckSubject to_check = subject->to_check(2);
  FirstLoss loss = some_leaf(*space, to_check, one);
  const auto whole = recovery_after(*space, to_check, loss);
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->unread.empty());
  EXPECT_TRUE(crashcheck(*subject, once, {*whole}, {.engine = EngineKind::lazy})->complete);
  // As if the recovery had not read what it read last.
  loss.assignment.pop_back();
  const auto short_of_one = recovery_after(*space, to_check, loss);
  ASSERT_TRUE(short_of_one);
  for (const EngineKind engine : {EngineKind::lazy, EngineKind::explicit_states}) {
    EXPECT_THROW((void)crashcheck(*subject, once, {*short_of_one}, {.engine = engine}), CheckFailure);
  }
}

TEST(Crashcheck, CachesOfNodesApartLoseMoreAndTheRightProtocolPasses) {
  for (const std::string scenario : {"one_publish", "crash_second_publish"}) {
    const auto subject = subject_of(scenario, {"layout.dp=2", "job.cluster.ranks_per_node=1"});
    CrashSpec spec = spec_of(scenario);
    spec.node_caches = false;
    const CrashCheckResult shared = checked(*subject, spec, {.engine = EngineKind::lazy});
    spec.node_caches = true;
    const CrashCheckResult apart = checked(*subject, spec, {.engine = EngineKind::lazy});
    EXPECT_TRUE(apart.complete);
    EXPECT_EQ(apart.violations, 0U) << (apart.story ? apart.story->what : "");
    EXPECT_FALSE(apart.legal < shared.legal) << scenario;
  }
}

TEST(Crashcheck, BothCatalogsPassTheSecondPublishWithRetention) {
  for (const std::string catalog : {"files", "rocksdb"}) {
    const auto subject = subject_of("crash_second_publish", {"layout.dp=2", "job.checkpoint.catalog=" + catalog});
    const CrashCheckResult result =
        checked(*subject, spec_of("crash_second_publish"), {.engine = EngineKind::lazy, .jobs = 2});
    EXPECT_TRUE(result.complete) << catalog;
    EXPECT_EQ(result.violations, 0U) << (result.story ? result.story->what : "");
  }
}

TEST(Crashcheck, ABaseThatWasWalkedHoldsWhatTheContentHolds) {
  FixedContent content;
  const auto directory = content.add(DiskContent::root, "d", FileKind::directory);
  content.add(directory, "a", FileKind::file, Value::copy_of("abc"));
  const auto base = base_of(content);
  ASSERT_EQ(base.size(), 2U);
  EXPECT_EQ(base[0].path, "d");
  EXPECT_EQ(base[1].path, "d/a");
  EXPECT_EQ(base[1].bytes.text(), "abc");
}

}  // namespace
}  // namespace firedrill
