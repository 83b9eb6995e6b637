#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

using testing::ElementsAre;

class Retention : public BothCatalogs {};
INSTANTIATE_TEST_SUITE_P(Catalogs, Retention, both_catalogs, catalog_name);

int number_of(const TestDisk& disk, FileOp op, const std::string& path, int behind = 0) {
  for (const DiskOperation& operation : disk.log) {
    if (operation.number > behind && operation.op == op && operation.path == path) return operation.number;
  }
  return -1;
}

std::set<std::string> names_in(const TestDisk& disk, const std::string& directory) {
  std::set<std::string> names;
  for (const auto& [path, inode] : disk.now) {
    if (parent_path(path) == directory) names.emplace(file_name(path));
  }
  return names;
}

TEST_P(Retention, TheTwoNewestValidatedOnesAreKept) {
  TestDisk disk(GetParam());
  expect_ok(TestAttempt(disk).train({2, 4, 6, 8}));
  EXPECT_EQ(names_in(disk, "shards"), (std::set<std::string>{"6-1-1", "8-1-1"}));
  const Survey survey = survey_of(disk);
  EXPECT_THAT(survey.manifests, ElementsAre(id(8), id(6)));
  EXPECT_THAT(survey.validated, ElementsAre(id(8), id(6)));
  EXPECT_THAT(survey.tombstones, ElementsAre(id(4))) << "one retirement's stay until the next";
}

TEST(RetentionInFiles, TombstoneThenManifestThenShardsEachDurableBeforeTheNext) {
  TestDisk disk;
  TestAttempt attempt(disk);
  expect_ok(attempt.train({2, 4, 6}));
  const int validated = number_of(disk, FileOp::create, "validated/6-1-1");
  const int mark_durable = number_of(disk, FileOp::sync_directory, "validated", validated);
  const int tombstone = number_of(disk, FileOp::sync, "tombstones/2-1-1");
  const int tombstone_durable = number_of(disk, FileOp::sync_directory, "tombstones", tombstone);
  const int manifest = number_of(disk, FileOp::remove, "manifests/2-1-1");
  const int manifest_durable = number_of(disk, FileOp::sync_directory, "manifests", manifest);
  const int shard = number_of(disk, FileOp::remove, "shards/2-1-1/extra-0");
  const std::vector<int> order{validated, mark_durable,     tombstone, tombstone_durable,
                               manifest,  manifest_durable, shard};
  EXPECT_GT(validated, 0);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  for (const DiskOperation& operation : disk.log) {
    EXPECT_TRUE(operation.op != FileOp::remove || operation.rank == 0) << "only the coordinator deletes";
  }
  EXPECT_EQ(attempt.observer.all(EventKind::retired).size(), 1U);
}

TEST_P(Retention, NothingGoesWhenAPublishFails) {
  TestDisk disk(GetParam());
  TestAttempt attempt(disk);
  attempt.job.checkpoint.keep_validated = 1;
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::write && operation.path.starts_with("shards/4-")) {
      return Error{.code = Code::no_space, .message = "injected", .injected = true};
    }
    return std::nullopt;
  };
  EXPECT_EQ(cause(attempt.train({2, 4})).code, Code::no_space);
  EXPECT_THAT(survey_of(disk).manifests, ElementsAre(id(2)));
  EXPECT_TRUE(attempt.observer.all(EventKind::retired).empty());
  EXPECT_EQ(discover_on(disk, attempt).chosen->step, 2);
}

TEST(RetentionInFiles, ItsErrorIsReportedAndDoesNotFailAGoodPublish) {
  TestDisk disk;
  bool failing = true;
  disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (failing && operation.op == FileOp::remove && operation.path == "manifests/2-1-1") {
      failing = false;
      return Error{.code = Code::io_error, .message = "injected", .injected = true};
    }
    return std::nullopt;
  };
  TestAttempt attempt(disk);
  expect_ok(attempt.train({2, 4, 6, 8}));
  EXPECT_EQ(attempt.observer.all(EventKind::acknowledged).size(), 16U);
  const auto failed = attempt.observer.all(EventKind::save_failed);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].phase, Phase::retire);
  EXPECT_FALSE(disk.has("manifests/2-1-1")) << "the next retention does it again";
  EXPECT_FALSE(disk.has("shards/2-1-1"));
}

TEST(RetentionInFiles, WhatADeadAttemptLeftIsSweptBehindTheNextValidation) {
  TestDisk disk;
  expect_ok(TestAttempt(disk).train({2}));
  TestAttempt killed(disk, 2);
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::rename && operation.path == "tmp/4-2-1") {
      return Error{.code = Code::dead, .message = "killed"};
    }
    return std::nullopt;
  };
  (void)killed.train({4});
  disk.hook = nullptr;
  ASSERT_TRUE(disk.has("shards/4-2-1/model-0"));
  ASSERT_TRUE(disk.has("tmp/4-2-1"));
  TestAttempt attempt(disk, 3);
  expect_ok(attempt.train({}));
  EXPECT_TRUE(disk.has("shards/4-2-1/model-0")) << "nothing is swept before a validation";
  TestAttempt next(disk, 4);
  expect_ok(next.train({4}));
  EXPECT_FALSE(disk.has("shards/4-2-1"));
  EXPECT_FALSE(disk.has("tmp/4-2-1"));
  EXPECT_EQ(names_in(disk, "manifests"), (std::set<std::string>{"2-1-1", "4-4-1"}));
}

TEST(RetentionInFiles, AnInterruptedRetirementIsFinishedByTheNextAttempt) {
  TestDisk disk;
  TestAttempt killed(disk);
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::remove && operation.path == "shards/2-1-1/model-1") {
      return Error{.code = Code::dead, .message = "killed"};
    }
    return std::nullopt;
  };
  (void)killed.train({2, 4, 6});
  disk.hook = nullptr;
  ASSERT_TRUE(disk.has("tombstones/2-1-1"));
  TestAttempt attempt(disk, 2);
  expect_ok(attempt.train({8}));
  EXPECT_EQ(attempt.restored->step, 6);
  EXPECT_FALSE(disk.has("shards/2-1-1"));
  EXPECT_FALSE(disk.has("tombstones/2-1-1"));
  EXPECT_EQ(names_in(disk, "manifests"), (std::set<std::string>{"6-1-1", "8-2-1"}));
}

std::optional<Error> fail_once(bool& failing, const DiskOperation& operation, FileOp op, const std::string& path) {
  if (!failing || operation.op != op || operation.path != path) return std::nullopt;
  failing = false;
  return Error{.code = Code::io_error, .message = "injected", .injected = true};
}

// What a failed sync was to make durable never is, whatever a later sync says: the removal has to be done again.
TEST(RetentionInFiles, APowerLossBringsBackNoManifestWhoseRemovalFailedToSync) {
  TestDisk disk;
  bool failing = true;
  disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (!disk.has("validated/6-1-1")) return std::nullopt;
    return fail_once(failing, operation, FileOp::sync_directory, "manifests");
  };
  TestAttempt attempt(disk);
  expect_ok(attempt.train({2, 4, 6, 8, 10, 12}));
  ASSERT_FALSE(failing);
  EXPECT_FALSE(disk.has("shards/2-1-1"));
  EXPECT_EQ(names_in(*disk.after_power_loss(), "manifests"), (std::set<std::string>{"10-1-1", "12-1-1"}));
}

TEST(RetentionInFiles, TheNextAttemptMakesARemovalDurableBeforeItSweepsTheShards) {
  TestDisk disk;
  bool failing = true;
  disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (!failing) return Error{.code = Code::dead, .message = "killed"};
    if (!disk.has("validated/6-1-1")) return std::nullopt;
    return fail_once(failing, operation, FileOp::sync_directory, "manifests");
  };
  (void)TestAttempt(disk).train({2, 4, 6});
  ASSERT_FALSE(failing);
  ASSERT_TRUE(disk.has("shards/2-1-1"));
  ASSERT_TRUE(disk.after_power_loss()->has("manifests/2-1-1"));
  disk.hook = nullptr;
  expect_ok(TestAttempt(disk, 2).train({8}));
  EXPECT_FALSE(disk.has("shards/2-1-1"));
  EXPECT_FALSE(disk.after_power_loss()->has("manifests/2-1-1"));
}

TEST(RetentionInFiles, ACommitWhoseSyncFailedIsCommittedAgainByWhoeverBuildsOnIt) {
  TestDisk disk;
  bool failing = true;
  disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (!failing) return Error{.code = Code::dead, .message = "killed"};
    if (!disk.has("manifests/4-1-1")) return std::nullopt;
    return fail_once(failing, operation, FileOp::sync_directory, "manifests");
  };
  (void)TestAttempt(disk).train({2, 4});
  ASSERT_FALSE(failing);
  ASSERT_FALSE(disk.after_power_loss()->has("manifests/4-1-1"));
  disk.hook = nullptr;
  TestAttempt attempt(disk, 2);
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored->step, 4);
  const auto left = disk.after_power_loss();
  EXPECT_TRUE(left->has("validated/4-1-1"));
  EXPECT_EQ(discover_on(*left, attempt).chosen->step, 4);
}

TEST(RetentionInFiles, AMarkWhoseSyncFailedIsMadeAnewByWhoeverBuildsOnIt) {
  TestDisk disk;
  bool failing = true;
  disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (!failing) return Error{.code = Code::dead, .message = "killed"};
    if (!disk.has("validated/4-1-1")) return std::nullopt;
    return fail_once(failing, operation, FileOp::sync_directory, "validated");
  };
  (void)TestAttempt(disk).train({2, 4});
  ASSERT_FALSE(failing);
  ASSERT_FALSE(disk.after_power_loss()->has("validated/4-1-1"));
  disk.hook = nullptr;
  expect_ok(TestAttempt(disk, 2).train({}));
  EXPECT_TRUE(disk.after_power_loss()->has("validated/4-1-1"));
}

TEST(RetentionInFiles, TheMarkOfAnOlderOneIsMadeAnewToo) {
  TestDisk disk;
  expect_ok(TestAttempt(disk).train({2, 4}));
  disk.durable.erase("validated/2-1-1");
  disk.forgotten.insert("validated/2-1-1");
  expect_ok(TestAttempt(disk, 2).train({}));
  EXPECT_TRUE(disk.after_power_loss()->has("validated/2-1-1")) << "retention counts on it";
}

// A tombstone alone hides a manifest, whatever is left of the shards.
TEST(RetentionInFiles, ACheckpointBeingDeletedIsNoCandidate) {
  TestDisk disk;
  TestAttempt attempt(disk);
  expect_ok(attempt.train({2, 4}));
  disk.now["tombstones/4-1-1"] = std::make_shared<TestDisk::Inode>();
  disk.now.erase("shards/4-1-1/model-0");
  const Discovery found = discover_on(disk, attempt);
  EXPECT_EQ(found.chosen->step, 2);
  EXPECT_TRUE(found.damaged.empty());
}

}  // namespace
}  // namespace firedrill
