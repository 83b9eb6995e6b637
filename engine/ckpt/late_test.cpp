// Names that are late on a rank are waited for; what never comes is damage, or an error that rejects nothing.
#include <gtest/gtest.h>

#include "engine/ckpt/survey.h"
#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

constexpr CheckpointId newest{.step = 4, .attempt = 1, .trial = 1};
const std::string late_shard = "shards/4-1-1/extra-2";

// The shard is not there for these ranks until `until`.
void hide(TestDisk& disk, const TestAttempt& attempt, const std::set<int>& ranks, Time until) {
  disk.hook = [&attempt, ranks, until](const DiskOperation& operation) -> std::optional<Error> {
    const bool hidden = ranks.contains(operation.rank) && attempt.clock.now() < until;
    if (hidden && operation.op == FileOp::open && operation.path == late_shard) {
      return Error{.code = Code::not_found, .message = operation.path};
    }
    return std::nullopt;
  };
}

TEST(LateShard, OnOneRankIsWaitedFor) {
  const auto disk = two_checkpoints();
  TestAttempt attempt(*disk, 2);
  hide(*disk, attempt, {1}, std::chrono::seconds(3));
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, newest);
}

TEST(LateShard, OnAllRanksIsWaitedForAndNotTakenForDamage) {
  const auto disk = two_checkpoints();
  TestAttempt attempt(*disk, 2);
  hide(*disk, attempt, {0, 1, 2, 3}, std::chrono::seconds(3));
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, newest);
  EXPECT_FALSE(disk->has("rejected/4-1-1"));
}

TEST(LateShard, ThatNeverComesOnOneRankRejectsNothing) {
  const auto disk = two_checkpoints();
  TestAttempt attempt(*disk, 2);
  hide(*disk, attempt, {1}, Time::max());
  EXPECT_EQ(cause(attempt.train({})).code, Code::unavailable);
  EXPECT_FALSE(disk->has("rejected/4-1-1"));
}

TEST(LateShard, ThatNeverComesAnywhereIsDamage) {
  const auto disk = two_checkpoints();
  TestAttempt attempt(*disk, 2);
  hide(*disk, attempt, {0, 1, 2, 3}, Time::max());
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, (CheckpointId{.step = 2, .attempt = 1, .trial = 1}));
  EXPECT_TRUE(disk->has("rejected/4-1-1"));
}

TEST(LostManifest, OfAValidatedCheckpointIsDamage) {
  const auto disk = two_checkpoints();
  disk->now.erase("manifests/4-1-1");
  TestAttempt attempt(*disk, 2);
  attempt.floor = 4;
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, (CheckpointId{.step = 2, .attempt = 1, .trial = 1}));
  ASSERT_EQ(attempt.observer.all(EventKind::damage).size(), 1U);
  EXPECT_TRUE(disk->has("rejected/4-1-1"));
}

TEST(LostManifest, OfTheOnlyCheckpointIsNoFreshStart) {
  const auto disk = two_checkpoints();
  disk->now.erase("manifests/2-1-1");
  disk->now.erase("manifests/4-1-1");
  TestAttempt attempt(*disk, 2);
  EXPECT_EQ(cause(attempt.train({})).code, Code::corrupted);
  EXPECT_FALSE(disk->has("rejected/4-1-1"));
}

TEST(LostManifest, ThatOnlyComesLateToEveryListingIsWaitedFor) {
  const auto disk = two_checkpoints();
  const auto manifest = disk->now.at("manifests/4-1-1");
  disk->now.erase("manifests/4-1-1");
  TestAttempt attempt(*disk, 2);
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    const bool late = attempt.clock.now() > std::chrono::seconds(2) && operation.op == FileOp::list;
    if (late && !disk->now.contains("rejected/4-1-1")) disk->now["manifests/4-1-1"] = manifest;
    return std::nullopt;
  };
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, newest);
}

TEST(LostManifest, OfARetiredOrRejectedCheckpointIsNone) {
  Survey survey{.manifests = {{.step = 2}}, .validated = {{.step = 8}, {.step = 6}, {.step = 4}, {.step = 2}}};
  survey.rejected = {{.step = 8}};
  survey.tombstones = {{.step = 4}};
  EXPECT_EQ(lost_manifests(survey), (std::vector<CheckpointId>{{.step = 6}}));
  survey.seen = {{.attempt = 1, .accepted = {{.step = 2}}}};
  EXPECT_TRUE(lost_manifests(survey).empty()) << "attempt 1 has not seen it, so it does not count";
}

TEST(Directories, WhoseNamesCouldNotBeSyncedAreMadeAnewByTheNextAttempt) {
  TestDisk disk;
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::sync_directory && operation.path.empty()) {
      return Error{.code = Code::io_error, .message = "sync", .injected = true};
    }
    return std::nullopt;
  };
  EXPECT_EQ(cause(TestAttempt(disk).train({})).code, Code::io_error);
  EXPECT_TRUE(disk.contents().empty());
}

// The first fails between the making of two directories, the second at the sync of the root.
class DirectoriesOfBothCatalogs : public BothCatalogs {};
INSTANTIATE_TEST_SUITE_P(Catalogs, DirectoriesOfBothCatalogs, both_catalogs, catalog_name);

TEST_P(DirectoriesOfBothCatalogs, OfAnAttemptThatNeverCameToItsSyncAreMadeAnew) {
  TestDisk disk(GetParam());
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::make_directory && operation.path == "shards") return injected_io_error();
    return std::nullopt;
  };
  EXPECT_EQ(cause(TestAttempt(disk, 1).train({})).code, Code::io_error);
  ASSERT_FALSE(disk.contents().empty());
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::sync_directory && operation.path.empty()) return injected_io_error();
    return std::nullopt;
  };
  EXPECT_EQ(cause(TestAttempt(disk, 2).train({})).code, Code::io_error);
  disk.hook = nullptr;
  TestAttempt attempt(disk, 3);
  expect_ok(attempt.train({2}));
  EXPECT_EQ(discover_on(*disk.after_power_loss(), attempt).chosen, id(2, 3));
}

TEST_P(DirectoriesOfBothCatalogs, ThatCouldNotBeRemovedBehindAFailedSyncAreMadeAnew) {
  TestDisk disk(GetParam());
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::remove) return injected_io_error();
    if (operation.op == FileOp::sync_directory && operation.path.empty()) return injected_io_error();
    return std::nullopt;
  };
  EXPECT_EQ(cause(TestAttempt(disk, 1).train({})).code, Code::io_error);
  ASSERT_TRUE(disk.has("shards"));
  EXPECT_EQ(cause(TestAttempt(disk, 2).train({})).code, Code::io_error) << "they cannot be removed";
  disk.hook = nullptr;
  TestAttempt attempt(disk, 3);
  expect_ok(attempt.train({2}));
  EXPECT_EQ(discover_on(*disk.after_power_loss(), attempt).chosen, id(2, 3));
}

TEST_P(DirectoriesOfBothCatalogs, OfARootThatIsInUseStayAsTheyAre) {
  const auto disk = two_checkpoints(GetParam());
  const auto before = disk->log.size();
  expect_ok(TestAttempt(*disk, 2).train({}));
  for (std::size_t i = before; i < disk->log.size(); ++i) {
    EXPECT_NE(disk->log[i].op, FileOp::make_directory) << disk->log[i].path;
  }
}

TEST(SeenRecord, ThatReadsBackOtherwiseThanWrittenEndsTheAttempt) {
  const auto disk = two_checkpoints();
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::drop_cache && operation.path == "tmp/2.seen") disk->at("tmp/2.seen").back() = 'x';
    return std::nullopt;
  };
  TestAttempt attempt(*disk, 2);
  EXPECT_EQ(cause(attempt.train({})).code, Code::corrupted);
  EXPECT_FALSE(disk->has("attempts/2.seen")) << "a torn record would hide every checkpoint";
}

}  // namespace
}  // namespace firedrill
