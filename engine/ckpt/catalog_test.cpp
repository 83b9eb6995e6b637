// What the RocksDB catalog adds to the contract of both, and what tells the two apart.
#include "engine/ckpt/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string newest_log(const TestDisk& disk) {
  std::string newest;
  for (const auto& [path, inode] : disk.now) {
    if (path.starts_with("catalog/") && path.ends_with(".log") && !inode->data.empty()) newest = path;
  }
  return newest;
}

TEST(Catalogs, ARootOfTheOtherKindIsRefusedByNamingBoth) {
  for (const CatalogKind there : {CatalogKind::files, CatalogKind::rocksdb}) {
    TestDisk disk(there);
    expect_ok(TestAttempt(disk).train({2}));
    disk.catalog = there == CatalogKind::files ? CatalogKind::rocksdb : CatalogKind::files;
    TestAttempt attempt(disk, 2);
    const auto before = disk.contents();
    const Error error = cause(attempt.train({4}));
    EXPECT_EQ(error.code, Code::mismatch);
    EXPECT_THAT(error.message, HasSubstr("files"));
    EXPECT_THAT(error.message, HasSubstr("rocksdb"));
    EXPECT_EQ(disk.contents(), before);
    EXPECT_EQ(discover_on(disk, attempt).trouble->code, Code::mismatch);
  }
}

TEST(RocksdbCatalog, ALostCurrentBesideShardsIsAnErrorNotAFreshStart) {
  const auto disk = two_checkpoints(CatalogKind::rocksdb);
  std::erase_if(disk->now, [](const auto& entry) { return entry.first.starts_with("catalog/"); });
  TestAttempt attempt(*disk, 2);
  const Error error = cause(attempt.train({}));
  EXPECT_EQ(error.code, Code::corrupted);
  EXPECT_THAT(error.message, HasSubstr("catalog/CURRENT is missing"));
  EXPECT_THAT(error.hint, HasSubstr("--rebuild-catalog"));
  EXPECT_EQ(discover_on(*disk, attempt).trouble->code, Code::corrupted);
  disk->now.erase("catalog");
  EXPECT_EQ(discover_on(*disk, attempt).trouble->code, Code::corrupted);
}

TEST(RocksdbCatalog, ACatalogThatCannotBeReadRejectsNoCheckpoint) {
  const auto disk = two_checkpoints(CatalogKind::rocksdb);
  disk->at(newest_log(*disk))[100] ^= 1;
  TestAttempt attempt(*disk, 2);
  EXPECT_EQ(cause(attempt.train({})).code, Code::corrupted);
  disk->at(newest_log(*disk))[100] ^= 1;
  // One rank's reads fail behind the survey: nobody may take that for damage to the checkpoint.
  int reads = 0;
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.rank != 2 || operation.op != FileOp::read || !operation.path.ends_with(".log")) return std::nullopt;
    if (++reads <= 2) return std::nullopt;  // the survey reads the logs of attempts 1 and 3
    return Error{.code = Code::io_error, .message = "injected", .injected = true};
  };
  TestAttempt next(*disk, 3);
  const Error error = cause(next.train({}));
  EXPECT_GT(reads, 2);
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_TRUE(error.injected);
  disk->hook = nullptr;
  EXPECT_THAT(survey_of(*disk).rejected, IsEmpty());
  EXPECT_EQ(discover_on(*disk, next).chosen, id(4));
}

TEST(RocksdbCatalog, ACommitWhoseSyncFailedIsMendedByANewTryAndGoesWithRetention) {
  TestDisk disk(CatalogKind::rocksdb);
  int syncs = 0;
  disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    // The claim, what was seen, and then the commit.
    if (operation.op != FileOp::sync || !operation.path.ends_with(".log") || ++syncs != 3) return std::nullopt;
    return Error{.code = Code::io_error, .message = "injected", .injected = true};
  };
  TestAttempt attempt(disk);
  expect_ok(attempt.train({2}));
  const auto failed = attempt.observer.all(EventKind::save_failed);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].phase, Phase::commit);
  EXPECT_EQ(failed[0].c, 1) << "the mark of the injected error is kept";
  EXPECT_THAT(attempt.observer.text(failed[0].name), HasSubstr("injected"));
  EXPECT_THAT(survey_of(disk).manifests, ElementsAre(CheckpointId{.step = 2, .attempt = 1, .trial = 2}));
  EXPECT_FALSE(disk.has("shards/2-1-1"));
}

TEST(RocksdbCatalog, ACopyOfManifestAndMarkLiesBesideTheShardsDurablyBeforeTheAcknowledgement) {
  TestDisk disk(CatalogKind::rocksdb);
  TestAttempt attempt(disk);
  std::size_t acknowledged_before = 1;
  disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::sync && operation.path == "shards/2-1-1/validated") {
      acknowledged_before = attempt.observer.all(EventKind::acknowledged).size();
    }
    return std::nullopt;
  };
  expect_ok(attempt.train({2}));
  EXPECT_EQ(acknowledged_before, 0U);
  const auto lost = disk.after_power_loss();
  ASSERT_TRUE(lost->has("shards/2-1-1/manifest"));
  ASSERT_TRUE(lost->has("shards/2-1-1/validated"));
  TestFiles files(disk, 0);
  DirectCompute compute;
  const auto manifest = make_rocksdb_catalog()->manifest(files, compute, id(2), false);
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(lost->at("shards/2-1-1/manifest"), manifest->text());
}

// Each validated checkpoint of the catalog has its copies beside its shards.
void expect_copies(TestDisk& disk, const std::string& when) {
  TestFiles files(disk, 0);
  DirectCompute compute;
  for (const CheckpointId& marked : survey_of(disk).validated) {
    const std::string beside = "shards/" + to_string(marked);
    const auto manifest = make_rocksdb_catalog()->manifest(files, compute, marked, false);
    ASSERT_TRUE(manifest.ok()) << when;
    ASSERT_TRUE(disk.has(beside + "/manifest")) << when << ": " << to_string(marked);
    EXPECT_EQ(disk.at(beside + "/manifest"), manifest->text()) << when;
    EXPECT_TRUE(disk.has(beside + "/validated")) << when << ": " << to_string(marked);
  }
}

// The coordinator dies before its n-th operation from the commit on; false: it had no more.
bool die_behind_the_commit(TestDisk& disk, int n) {
  bool committing = false;
  bool died = false;
  int operations = 0;
  disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.rank != 0) return std::nullopt;
    if (operation.path == "shards/2-1-1" && operation.op == FileOp::sync_directory) committing = true;
    died = died || (committing && operations++ == n);
    if (!died) return std::nullopt;
    return Error{.code = Code::dead, .message = "killed"};
  };
  (void)TestAttempt(disk).train({2});
  disk.hook = nullptr;
  return died;
}

TEST(RocksdbCatalog, ADeathWhereverItComesLeavesNoValidatedCheckpointWithoutItsCopies) {
  int marked_before_death = 0;
  int deaths = 0;
  for (;; ++deaths) {
    TestDisk disk(CatalogKind::rocksdb);
    if (!die_behind_the_commit(disk, deaths)) break;
    const auto lost = disk.after_power_loss();
    for (TestDisk* left : {&disk, lost.get()}) {
      const std::string when = "operation " + std::to_string(deaths) + (left == &disk ? "" : ", power lost");
      expect_copies(*left, when);
      marked_before_death += std::ssize(survey_of(*left).validated) == 1 ? 1 : 0;
      TestAttempt next(*left, 2);
      expect_ok(next.train({4}));
      EXPECT_THAT(survey_of(*left).validated, testing::Contains(CheckpointId{.step = 4, .attempt = 2, .trial = 1}));
      expect_copies(*left, when + ", resumed");
    }
  }
  EXPECT_GT(deaths, 20);
  EXPECT_GT(marked_before_death, 0);
}

TEST(RocksdbCatalog, TheCopiesAreNeverReadByFind) {
  const auto disk = two_checkpoints(CatalogKind::rocksdb);
  disk->at("shards/4-1-1/manifest") = "damaged";
  disk->now.erase("shards/4-1-1/validated");
  disk->log.clear();
  TestAttempt attempt(*disk, 2);
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, id(4));
  for (const DiskOperation& operation : disk->log) {
    EXPECT_FALSE(operation.path.ends_with("/manifest") || operation.path.ends_with("/validated")) << operation.path;
  }
}

// Attempt 2 looks while the commit of attempt 1 is still under way in a log that it cannot see.
TEST(RocksdbCatalog, ACommitThatAnAttemptDidNotAcceptStaysInvisible) {
  TestDisk disk(CatalogKind::rocksdb);
  expect_ok(TestAttempt(disk).train({2, 4}));
  TestFiles files(disk, 0);
  const auto catalog = make_rocksdb_catalog();
  ASSERT_TRUE(catalog->claim(files, 2));
  ASSERT_TRUE(catalog->record_seen(files, {.attempt = 2, .accepted = {id(2)}}));
  TestAttempt attempt(disk, 3);
  EXPECT_EQ(discover_on(disk, attempt).chosen, id(2));
  expect_ok(attempt.train({3}));
  EXPECT_EQ(attempt.restored, id(2));
  EXPECT_THAT(survey_of(disk).manifests, ElementsAre(id(3, 3), id(2)));
  EXPECT_FALSE(disk.has("shards/4-1-1"));
}

TEST(RocksdbCatalog, WhatWasFoundInACacheIsDurableBeforeTheAttemptGoesOn) {
  const auto disk =
      two_checkpoints(CatalogKind::rocksdb);  // nothing of it is durable: a copy has the visible tree only
  TestAttempt attempt(*disk, 2);
  std::unique_ptr<TestDisk> lost;
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    // A power loss behind the claim, before anything was found.
    if (!lost && operation.rank == 1 && operation.op == FileOp::open) lost = disk->after_power_loss();
    return std::nullopt;
  };
  expect_ok(attempt.train({}));
  ASSERT_TRUE(lost);
  EXPECT_THAT(survey_of(*lost).manifests, ElementsAre(id(4), id(2)));
  EXPECT_THAT(survey_of(*lost).claims, ElementsAre(1, 2));
}

TEST(RocksdbCatalog, AStaleListingHidesNothingThatIsKnownByNameAndNoOlderLogInSilence) {
  const auto disk = two_checkpoints(CatalogKind::rocksdb);
  const std::string log = newest_log(*disk);
  TestAttempt attempt(*disk, 2);
  EXPECT_EQ(discover_on(*disk, attempt).chosen, id(4));
  TestFiles files(*disk, 0);
  files.hidden = {log, "catalog/CURRENT"};
  DirectCompute compute;
  const auto catalog = make_rocksdb_catalog();
  EXPECT_THAT(catalog->survey(files, compute)->manifests, ElementsAre(id(4), id(2)));
  attempt.hidden[3] = {log};  // an older one, once attempt 2 has claimed
  EXPECT_EQ(cause(attempt.train({})).code, Code::corrupted);
  EXPECT_THAT(survey_of(*disk).rejected, IsEmpty());
  TestAttempt next(*disk, 3);
  expect_ok(next.train({}));
  EXPECT_EQ(next.restored, id(4));
}

}  // namespace
}  // namespace firedrill
