#include "harness/explore/crashcheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/explore/second_loss.h"
#include "harness/explore/test_subject.h"

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

TEST(Recording, ARunIsTheSameWithAndWithoutTheRecorder) {
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
