// What the protocol does when compute, an exchange, the clock or a rare operation of the disk fails: the error that
// came is the error that all ranks return.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ckpt/test_run.h"
#include "engine/rocks/record_store.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

struct Failures {
  std::string kernel;    // fails on `rank`
  std::string exchange;  // of this purpose, fails on all ranks behind the first `exchanges` of them
  int exchanges = 0;
  bool sleep = false;
  int rank = 0;
  Code code = Code::no_space;
};

class FailingCompute final : public ForwardingCompute {
 public:
  FailingCompute(Compute& inner, const Failures& failures, int rank)
      : ForwardingCompute(inner), failures_(failures), rank_(rank) {}
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override {
    if (kernel.name != failures_.kernel || rank_ != failures_.rank) return inner_.run(kernel, scalars, inputs);
    return Error{.code = failures_.code, .message = "injected"};
  }

 private:
  const Failures& failures_;
  int rank_;
};

class FailingExchanges final : public ForwardingCollectives {
 public:
  FailingExchanges(Collectives& inner, const Failures& failures) : ForwardingCollectives(inner), failures_(failures) {}
  Result<Value> all_gather(const Group& group, const Value& mine, const Call& call) override {
    if (fails(call)) return Error{.code = failures_.code, .message = "injected", .retryable = true};
    return inner_.all_gather(group, mine, call);
  }
  Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) override {
    if (fails(call)) return Error{.code = failures_.code, .message = "injected", .retryable = true};
    return inner_.broadcast(group, value, root, call);
  }

 private:
  bool fails(const Call& call) { return call.purpose == failures_.exchange && seen_++ >= failures_.exchanges; }
  const Failures& failures_;
  int seen_ = 0;
};

class FailingClock final : public ForwardingClock {
 public:
  FailingClock(Clock& inner, const Failures& failures) : ForwardingClock(inner), failures_(failures) {}
  Status sleep_until(Time time) override {
    if (failures_.sleep) return Error{.code = failures_.code, .message = "injected"};
    return inner_.sleep_until(time);
  }

 private:
  const Failures& failures_;
};

// Claims, finds, restores what is found and saves step 6.
Error error_of(TestAttempt& attempt, const Failures& failures) {
  return cause(attempt.run([&](const CheckpointContext& ctx, Protocol& protocol) -> Status {
    FailingCompute compute(ctx.parts.compute, failures, ctx.world.me);
    FailingExchanges collectives(ctx.parts.collectives, failures);
    FailingClock clock(ctx.parts.clock, failures);
    Parts parts{.files = ctx.parts.files,
                .transport = ctx.parts.transport,
                .collectives = collectives,
                .store = ctx.parts.store,
                .compute = compute,
                .clock = clock,
                .host = ctx.parts.host,
                .observer = ctx.parts.observer,
                .position = ctx.parts.position};
    const CheckpointContext here{
        .parts = parts, .job = ctx.job, .world = ctx.world, .identity = ctx.identity, .attempt = ctx.attempt};
    FD_TRY_VOID(protocol.claim_attempt(here));
    FD_TRY(const FindResult found, protocol.find(here));
    if (found.chosen) {
      StateView into = blank(test_state(attempt.job, 4, ctx.world.me, found.chosen->step));
      FD_TRY_VOID(protocol.restore(here, found, into));
    }
    const StateView state = test_state(attempt.job, 4, ctx.world.me, 6);
    FD_TRY_VOID(protocol.publish(here, 6, state, digest_of_state(state)));
    return {};
  }));
}

// Checkpoint 4 is damaged, 2 has no mark.
std::unique_ptr<TestDisk> one_damaged_one_unmarked() {
  TestDisk disk;
  expect_ok(TestAttempt(disk).train({2, 4}));
  auto copy = disk.copy();
  copy->at("shards/4-1-1/model-1").back() ^= 1;
  copy->now.erase("validated/2-1-1");
  return copy;
}

std::function<std::optional<Error>(const DiskOperation&)> failing(FileOp op, std::string path, Code code) {
  return [op, path = std::move(path), code](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op != op || !operation.path.starts_with(path)) return std::nullopt;
    return Error{.code = code, .message = "injected"};
  };
}

TEST(FailingParts, AnExchangeThatFailsEndsTheCallWithItsError) {
  {
    const auto disk = one_damaged_one_unmarked();
    TestAttempt attempt(*disk, 2);
    EXPECT_EQ(error_of(attempt, {}).message, "nobody failed");
  }
  for (const char* purpose : {"claim", "survey", "verify", "confirm", "found", "restore", "validated", "open", "shards",
                              "commit", "trial_restore"}) {
    const auto disk = one_damaged_one_unmarked();
    TestAttempt attempt(*disk, 2);
    const Error error = error_of(attempt, {.exchange = "checkpoint." + std::string(purpose), .code = Code::timeout});
    EXPECT_EQ(error.code, Code::timeout) << purpose;
    EXPECT_EQ(error.message, "injected") << purpose;
  }
  TestDisk empty;
  TestAttempt attempt(empty);
  EXPECT_EQ(error_of(attempt, {.exchange = "checkpoint.validated", .code = Code::timeout}).code, Code::timeout);
}

TEST(FailingParts, AKernelThatFailsOnOneRankIsEverybodysErrorOrTheDeathOfThatRank) {
  const std::map<std::string, int> kernels = {{"ckpt.encode_shards", 4}, {"ckpt.build_manifest", 1},
                                              {"ckpt.check_shards", 4},  {"ckpt.parse_manifest", 4},
                                              {"ckpt.plan_restore", 4},  {"ckpt.assemble", 4}};
  for (const auto& [kernel, ranks] : kernels) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const Code code : {Code::no_space, Code::dead}) {
        const auto disk = one_damaged_one_unmarked();
        TestAttempt attempt(*disk, 2);
        const Error error = error_of(attempt, {.kernel = kernel, .rank = rank, .code = code});
        EXPECT_EQ(error.code, code) << kernel << " " << rank;
        EXPECT_THAT(error.message, HasSubstr("injected")) << kernel << " " << rank;
      }
    }
  }
}

TEST(FailingParts, OnlyWhatANewTryMayMendIsTriedAgain) {
  const std::map<Code, int> tries = {{Code::no_space, 3}, {Code::internal, 1}, {Code::invalid_input, 1}};
  for (const auto& [code, count] : tries) {
    TestDisk disk;
    TestAttempt attempt(disk);
    const Error error = error_of(attempt, {.kernel = "ckpt.encode_shards", .rank = 1, .code = code});
    EXPECT_EQ(error.code, code);
    EXPECT_THAT(error.message, HasSubstr(count == 1 ? "in 1 tries" : "in 3 tries"));
  }
}

// Training may go on behind a failed publish only where all ranks know of it.
TEST(FailingParts, APublishMayBeMadeUpForIfItsTriesFailedOnAllRanksAlike) {
  for (const Code code : {Code::no_space, Code::io_error, Code::corrupted, Code::not_found}) {
    TestDisk disk;
    TestAttempt attempt(disk);
    EXPECT_TRUE(error_of(attempt, {.kernel = "ckpt.encode_shards", .rank = 1, .code = code}).retryable);
  }
  for (const char* purpose : {"open", "shards", "commit", "trial_restore"}) {
    TestDisk disk;
    TestAttempt attempt(disk);
    const std::string exchange = "checkpoint." + std::string(purpose);
    EXPECT_FALSE(error_of(attempt, {.exchange = exchange, .code = Code::corrupted}).retryable) << purpose;
  }
  TestDisk disk;
  TestAttempt attempt(disk);
  EXPECT_FALSE(error_of(attempt, {.kernel = "ckpt.encode_shards", .rank = 1, .code = Code::internal}).retryable);
}

TEST(FailingParts, AClockThatFailsEndsAnyWaitForWhatMayBeLate) {
  for (const char* late : {"shards/4-1-1/extra-2", "manifests/4-1-1"}) {
    TestDisk disk;
    expect_ok(TestAttempt(disk).train({2, 4}));
    disk.now.erase(late);
    TestAttempt attempt(disk, 2);
    EXPECT_EQ(error_of(attempt, {.sleep = true, .code = Code::timeout}).code, Code::timeout) << late;
    TestAttempt next(disk, 3);
    const Failures second_survey{.exchange = "checkpoint.survey", .exchanges = 1, .code = Code::timeout};
    const bool again = std::string(late).starts_with("manifests");
    EXPECT_EQ(error_of(next, second_survey).message, again ? "injected" : "nobody failed") << late;
  }
}

TEST(FailingDisk, AMarkThatCannotBeWrittenBehindARestoreIsEverybodysError) {
  for (const Code code : {Code::io_error, Code::dead}) {
    const auto disk = one_damaged_one_unmarked();
    disk->hook = failing(FileOp::create, "validated/2-1-1", code);
    TestAttempt attempt(*disk, 2);
    EXPECT_EQ(cause(attempt.train({})).code, code);
    EXPECT_FALSE(disk->has("validated/2-1-1"));
  }
}

TEST(FailingDisk, ARejectionThatCannotBeWrittenEndsTheSearch) {
  const auto disk = one_damaged_one_unmarked();
  disk->hook = failing(FileOp::create, "rejected/", Code::io_error);
  EXPECT_EQ(cause(TestAttempt(*disk, 2).train({})).code, Code::io_error);
  EXPECT_FALSE(disk->has("rejected/4-1-1"));
}

TEST(FailingDisk, ASecondLookThatFailsOtherwiseRejectsNothing) {
  const auto disk = one_damaged_one_unmarked();
  disk->hook = failing(FileOp::drop_cache, "shards/4-1-1/", Code::no_space);
  EXPECT_EQ(cause(TestAttempt(*disk, 2).train({})).code, Code::no_space);
  EXPECT_FALSE(disk->has("rejected/4-1-1"));
}

TEST(FailingDisk, ADeathWhileAFailedTryIsRemovedEndsThePublish) {
  TestDisk disk;
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::write && operation.path == "shards/2-1-1/model-1") {
      return Error{.code = Code::io_error, .message = "injected"};
    }
    if (operation.op == FileOp::remove) return Error{.code = Code::dead, .message = "killed"};
    return std::nullopt;
  };
  EXPECT_EQ(cause(TestAttempt(disk).train({2})).code, Code::dead);
}

TEST(FailingDisk, ADirectoryThatIsThereAlreadyIsSomebodyElsesAndStays) {
  TestDisk disk;
  TestFiles files(disk, 0);
  for (const char* directory : {"shards", "shards/2-1-1"}) ASSERT_TRUE(files.make_directory(directory).ok());
  TestAttempt attempt(disk);
  expect_ok(attempt.train({2}));
  ASSERT_EQ(attempt.published.size(), 1U);
  EXPECT_EQ(attempt.published[0].trial, 2);
  EXPECT_TRUE(disk.has("shards/2-1-1"));
}

TEST(FailingDisk, AManifestOfShardsThatLieElsewhereIsDamage) {
  const auto disk = one_damaged_one_unmarked();
  std::string& text = disk->at("manifests/4-1-1");
  text.replace(text.find("shards/4-1-1"), 12, "shards/2-1-1");
  text.resize(text.rfind("\"digest\":\""));
  text += "\"digest\":\"" + digest_of(std::string_view(text)).hex() + "\"}\n";
  const Discovery found = discover_on(*disk, TestAttempt(*disk, 2));
  EXPECT_EQ(found.chosen, id(2));
  ASSERT_EQ(found.damaged.size(), 1U);
  EXPECT_THAT(found.damaged[0].what, HasSubstr("manifests/4-1-1 is the manifest of 4-1-1 in shards/2-1-1"));
}

TEST(FailingRocksdbCatalog, EveryWritingCallReturnsTheErrorOfTheStore) {
  TestDisk disk(CatalogKind::rocksdb);
  expect_ok(TestAttempt(disk).train({2, 4}));
  TestFiles files(disk, 0);
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (!operation.path.starts_with(catalog_directory)) return std::nullopt;
    return Error{.code = Code::io_error, .message = "injected"};
  };
  const auto code = [](const Status& status) { return status ? Code::internal : status.error().code; };
  const auto fresh = [] { return make_rocksdb_catalog(); };
  bool issued = false;
  EXPECT_EQ(code(fresh()->commit(files, id(6), Value::copy_of(std::string_view("m")), issued)), Code::io_error);
  EXPECT_FALSE(issued);
  EXPECT_EQ(code(fresh()->mark_validated(files, id(4))), Code::io_error);
  EXPECT_EQ(code(fresh()->mark_rejected(files, id(4))), Code::io_error);
  EXPECT_EQ(code(fresh()->record_seen(files, {.attempt = 2})), Code::io_error);
  EXPECT_EQ(code(fresh()->bury(files, {id(2)})), Code::io_error);
  EXPECT_EQ(code(fresh()->sweep(files, 2, [](auto, auto&) { return false; })), Code::io_error);
  DirectCompute compute;
  EXPECT_EQ(fresh()->survey(files, compute).error().code, Code::io_error);
  const auto manifest = fresh()->manifest(files, compute, id(4), false);
  EXPECT_EQ(manifest.error().code, Code::unavailable);
}

TEST(FailingRocksdbCatalog, ARecordOfAnAttemptThatIsNotWholeEndsTheSearch) {
  TestDisk disk(CatalogKind::rocksdb);
  expect_ok(TestAttempt(disk).train({2}));
  TestFiles files(disk, 0);
  {
    const auto store = RecordStore::open(files, catalog_directory);
    const RecordChange change{.name = "attempts/1.seen", .value = Value::copy_of(std::string_view("half"))};
    ASSERT_TRUE((*store)->write({change}).ok());
  }
  const Error error = cause(TestAttempt(disk, 2).train({}));
  EXPECT_EQ(error.code, Code::corrupted);
  EXPECT_THAT(error.message, HasSubstr("attempts/1.seen"));
}

}  // namespace
}  // namespace firedrill
