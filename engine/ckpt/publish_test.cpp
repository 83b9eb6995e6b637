#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

class Publish : public BothCatalogs {};
INSTANTIATE_TEST_SUITE_P(Catalogs, Publish, both_catalogs, catalog_name);

const CheckpointId first{.step = 2, .attempt = 1, .trial = 1};

Error injected(Code code) { return Error{.code = code, .message = "injected", .injected = true}; }

int index_of(const TestDisk& disk, FileOp op, const std::string& path) {
  for (const DiskOperation& operation : disk.log) {
    if (operation.op == op && operation.path == path) return operation.number;
  }
  return -1;
}

TEST_P(Publish, WhatFourRanksSavedIsFoundAndRestoredByFourTwoAndOne) {
  for (const int ranks : {4, 2, 1}) {
    TestDisk disk(GetParam());
    TestAttempt save(disk);
    expect_ok(save.train({2}));
    TestAttempt resume(disk, 2, ranks);
    expect_ok(resume.train({}));
    ASSERT_TRUE(resume.restored.has_value()) << ranks << " ranks";
    EXPECT_EQ(*resume.restored, first);
    EXPECT_EQ(resume.observer.all(EventKind::restored).size(), static_cast<std::size_t>(ranks));
  }
}

TEST_P(Publish, WhatOneRankSavedIsRestoredByFour) {
  TestDisk disk(GetParam());
  TestAttempt save(disk, 1, 1);
  expect_ok(save.train({2}));
  TestAttempt resume(disk, 2, 4);
  expect_ok(resume.train({}));
  EXPECT_EQ(resume.restored, first);
}

TEST(PublishToFiles, EachShardIsWrittenWithOneCallAndPaddingIsNotStored) {
  TestDisk disk;
  TestAttempt save(disk);
  expect_ok(save.train({2}));
  int writes = 0;
  std::size_t bytes = 0;
  for (const DiskOperation& operation : disk.log) {
    if (operation.op == FileOp::write && operation.path.starts_with("shards/")) ++writes;
  }
  for (const auto& [path, data] : disk.contents()) {
    if (path.starts_with("shards/2-1-1/")) bytes += data.size();
  }
  EXPECT_EQ(writes, 12);
  const std::size_t header = 72 + 8 + 16;
  const std::size_t tensors = 2 * (35 + 300) * 4 + 2 * 8 + 4 * 8;
  EXPECT_EQ(bytes, 12 * header + tensors);
}

// What is found on the disk after attempt 2 has tried to publish step 4, with the caches and without them.
void expect_old_or_new(TestDisk& disk, const TestAttempt& attempt, const std::string& when) {
  const bool acknowledged = !attempt.observer.all(EventKind::acknowledged).empty();
  const auto lost = disk.after_power_loss();
  for (TestDisk* view : {&disk, lost.get()}) {
    const Discovery found = discover_on(*view, attempt);
    ASSERT_TRUE(found.chosen.has_value()) << when << ": " << found.trouble->message;
    EXPECT_TRUE(found.damaged.empty()) << when << ": " << found.damaged[0].what;
    EXPECT_TRUE(!acknowledged || found.chosen->step == 4) << when;
    TestAttempt resume(*view, 3);
    expect_ok(resume.train({6}));
    EXPECT_EQ(resume.restored, found.chosen) << when;
  }
}

// The heart of the protocol: all ranks, or one, stop behind any operation.
TEST_P(Publish, ADeathBehindAnyOperationLeavesTheOldOrTheNewCheckpointWhole) {
  constexpr int everybody = -1;
  for (const int victim : {everybody, 0, 3}) {
    const int stride = GetParam() == CatalogKind::files || victim == everybody ? 1 : 3;  // each costs milliseconds
    bool died = true;
    int last = 0;
    for (; died; last += stride) {
      TestDisk disk(GetParam());
      expect_ok(TestAttempt(disk).train({2}));
      TestAttempt attempt(disk, 2);
      died = false;
      int operations = 0;
      disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
        const bool concerned = victim == everybody || operation.rank == victim;
        if (!concerned || ++operations <= last) return std::nullopt;
        died = true;
        return Error{.code = Code::dead, .message = "killed"};
      };
      (void)attempt.train({4});
      disk.hook = nullptr;
      expect_old_or_new(disk, attempt, "rank " + std::to_string(victim) + " behind " + std::to_string(last));
    }
    EXPECT_GT(last, 40);
  }
}

TEST_P(Publish, AnErrorOfAnyOperationIsEverybodysOrMendedByANewTry) {
  bool fired = true;
  int mended = 0;
  int failed = 0;
  for (int position = 1; fired; ++position) {
    TestDisk disk(GetParam());
    expect_ok(TestAttempt(disk).train({2}));
    TestAttempt attempt(disk, 2);
    fired = false;
    int operations = 0;
    disk.hook = [&](const DiskOperation&) -> std::optional<Error> {
      if (++operations != position) return std::nullopt;
      fired = true;
      return injected(Code::io_error);
    };
    const auto results = attempt.train({4});
    disk.hook = nullptr;
    const std::string when = "error at operation " + std::to_string(position);
    for (const Status& result : results) {
      EXPECT_EQ(result.ok(), results[0].ok()) << when;
      EXPECT_TRUE(result.ok() || result.failed_with(results[0].error().code)) << when;
    }
    ++(results[0].ok() ? mended : failed);
    expect_old_or_new(disk, attempt, when);
  }
  EXPECT_GT(mended, 40);
  EXPECT_GT(failed, 10) << "errors of the claim, of find and of restore end the attempt";
}

TEST_P(Publish, AFailedWriteOfOneRankFailsTheTryAndAllWriteAgainElsewhere) {
  for (const Code code : {Code::io_error, Code::no_space}) {
    for (const FileOp op : {FileOp::create, FileOp::write, FileOp::sync, FileOp::close}) {
      TestDisk disk(GetParam());
      disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
        if (operation.op == op && operation.path == "shards/2-1-1/model-2") return injected(code);
        return std::nullopt;
      };
      TestAttempt attempt(disk);
      expect_ok(attempt.train({2}));
      ASSERT_EQ(attempt.published.size(), 1U);
      EXPECT_EQ(to_string(attempt.published[0]), "2-1-2");
      EXPECT_FALSE(disk.has("shards/2-1-1")) << "a failed try is removed at once";
      EXPECT_THAT(survey_of(disk).manifests, testing::ElementsAre(attempt.published[0]));
      const auto failed = attempt.observer.all(EventKind::save_failed);
      ASSERT_EQ(failed.size(), 1U);
      EXPECT_EQ(failed[0].rank, 2);
      EXPECT_EQ(failed[0].b, 0);
      EXPECT_EQ(failed[0].c, 1);
    }
  }
}

TEST_P(Publish, AFailedSyncIsNeverRetriedOnTheSameFile) {
  TestDisk disk(GetParam());
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::sync && operation.path == "shards/2-1-1/optimizer-1") return injected(Code::io_error);
    return std::nullopt;
  };
  expect_ok(TestAttempt(disk).train({2}));
  int syncs = 0;
  for (const DiskOperation& operation : disk.log) {
    if (operation.op == FileOp::sync && operation.path == "shards/2-1-1/optimizer-1") ++syncs;
  }
  EXPECT_EQ(syncs, 1);
}

TEST_P(Publish, AnErrorThatStaysFailsThePublishOnAllRanksAfterThreeTries) {
  TestDisk disk(GetParam());
  expect_ok(TestAttempt(disk).train({2}));
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::write && operation.rank == 3) return injected(Code::no_space);
    return std::nullopt;
  };
  TestAttempt attempt(disk, 2);
  const auto results = attempt.train({4});
  for (const Status& result : results) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::no_space);
    EXPECT_TRUE(result.error().injected);
    EXPECT_THAT(result.error().message, HasSubstr("rank 3"));
  }
  EXPECT_EQ(attempt.observer.all(EventKind::acknowledged).size(), 0U);
  EXPECT_EQ(attempt.observer.all(EventKind::save_failed).size(), 3U + 4U);
  disk.hook = nullptr;
  EXPECT_EQ(discover_on(disk, attempt).chosen, first);
  for (const auto& [path, data] : disk.contents()) EXPECT_FALSE(path.starts_with("shards/4-")) << path;
}

TEST(PublishToFiles, AManifestWhoseRenameFailedMayBeThereSoItsShardsStay) {
  TestDisk disk;
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::rename && operation.second == "manifests/2-1-1") return injected(Code::io_error);
    return std::nullopt;
  };
  TestAttempt attempt(disk);
  expect_ok(attempt.run([&](const CheckpointContext& ctx, Protocol& protocol) -> Status {
    FD_TRY_VOID(protocol.claim_attempt(ctx));
    FD_TRY_VOID(protocol.find(ctx));
    const StateView state = test_state(attempt.job, 4, ctx.world.me, 2);
    FD_TRY(const Publication publication, protocol.publish(ctx, 2, state, digest_of_state(state)));
    EXPECT_EQ(publication.tries, 2);
    return {};
  }));
  EXPECT_GT(index_of(disk, FileOp::remove, "manifests/2-1-1"), 0) << "the doubtful manifest goes with retention";
  EXPECT_GT(index_of(disk, FileOp::remove, "shards/2-1-1/model-0"), index_of(disk, FileOp::remove, "manifests/2-1-1"));
  EXPECT_FALSE(disk.has("shards/2-1-1"));
  EXPECT_TRUE(disk.has("shards/2-1-2"));
}

// A protocol whose disk loses what one rank writes, without an error.
class DropsBytes : public Protocol {
  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    if (path != "shards/2-1-1/extra-3") return Protocol::write_shard(ctx, path, bytes);
    std::string changed(bytes.text());
    changed.back() = static_cast<char>(changed.back() ^ 1);
    return Protocol::write_shard(ctx, path, Value::copy_of(changed));
  }
};

TEST_P(Publish, TheTrialRestoreOfAnotherNodeCatchesBytesThatWereNotWritten) {
  TestDisk disk(GetParam());
  TestAttempt attempt(disk);
  attempt.make_protocol = [] { return std::make_unique<DropsBytes>(); };
  expect_ok(attempt.train({2}));
  const auto failed = attempt.observer.all(EventKind::save_failed);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].phase, Phase::validate);
  EXPECT_EQ(failed[0].rank / 2, 0) << "rank 3 is of the other node";
  EXPECT_THAT(attempt.observer.text(failed[0].name), HasSubstr("random.lane.3"));
  ASSERT_EQ(attempt.published.size(), 1U);
  EXPECT_EQ(attempt.published[0].trial, 2);
  EXPECT_THAT(survey_of(disk).validated, testing::ElementsAre(attempt.published[0]));
}

TEST_P(Publish, ADiskWithoutRoomIsSaidBeforeAnythingIsWritten) {
  TestDisk disk(GetParam());
  disk.room = 1000;
  TestAttempt attempt(disk);
  const Error error = cause(attempt.train({2}));
  EXPECT_EQ(error.code, Code::no_space);
  EXPECT_THAT(error.message, HasSubstr("room for 1000"));
  for (const DiskOperation& operation : disk.log) {
    EXPECT_FALSE(changes_disk(operation.op) && operation.path.starts_with("shards/2")) << operation.path;
  }
}

TEST_P(Publish, NoNameIsUsedTwiceWhenAStepIsSavedTwice) {
  TestDisk disk(GetParam());
  TestAttempt attempt(disk);
  expect_ok(attempt.train({2, 2}));
  ASSERT_EQ(attempt.published.size(), 2U);
  EXPECT_EQ(to_string(attempt.published[1]), "2-1-2");
  EXPECT_TRUE(attempt.observer.all(EventKind::save_failed).empty());
}

TEST(PublishToFiles, SuccessIsAcknowledgedByAllRanksAndOnlyBehindTheMark) {
  TestDisk disk;
  TestAttempt attempt(disk);
  int acknowledged_before_mark = 0;
  disk.hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::sync_directory && operation.path == "validated") {
      acknowledged_before_mark = static_cast<int>(attempt.observer.all(EventKind::acknowledged).size());
    }
    return std::nullopt;
  };
  expect_ok(attempt.train({2}));
  EXPECT_EQ(acknowledged_before_mark, 0);
  EXPECT_EQ(attempt.observer.all(EventKind::acknowledged).size(), 4U);
  EXPECT_EQ(attempt.observer.all(EventKind::shard_written).size(), 12U);
  EXPECT_EQ(attempt.observer.all(EventKind::committed).size(), 1U);
  EXPECT_EQ(attempt.observer.all(EventKind::validated).size(), 1U);
}

}  // namespace
}  // namespace firedrill
