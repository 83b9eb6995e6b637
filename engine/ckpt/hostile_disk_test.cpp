// What a rank, a publish or a restore says to a disk that holds what nobody wrote there, gives less than it should, or
// fails at an unusual place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/files.h"
#include "engine/ckpt/shard.h"
#include "engine/ckpt/survey.h"
#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

std::string with_seen_digest(const std::string& body) {
  return body + "digest " + digest_of(std::string_view(body)).hex() + "\n";
}

TEST(SeenRecord, IsRefusedForEachLineThatCannotBeAlthoughItsDigestHolds) {
  const auto refused = [](const std::string& body) { return refusal(parse_seen(with_seen_digest(body))).message; };
  EXPECT_EQ(refused("firedrill.seen/1\nattempt 3\n2-1-1\n"), "accepted");
  EXPECT_THAT(refused(""), HasSubstr("does not begin as such a record does"));
  EXPECT_THAT(refused("firedrill.seen/1\n"), HasSubstr("does not begin"));
  EXPECT_THAT(refused("firedrill.seen/9\nattempt 3\n"), HasSubstr("does not begin"));
  EXPECT_THAT(refused("firedrill.seen/1\nattempts 3\n"), HasSubstr("does not begin"));
  EXPECT_THAT(refused("firedrill.seen/1\nattempt x\n"), HasSubstr("not a number"));
  EXPECT_THAT(refused("firedrill.seen/1\nattempt 3000000000\n"), HasSubstr("not a number"));
  EXPECT_THAT(refused("firedrill.seen/1\nattempt 3\n2-1\n"), HasSubstr("`2-1` is no checkpoint"));
}

TEST(SeenRecord, OfAnotherAttemptOrUnderAnotherNameIsToldApart) {
  const auto asked = [](std::string_view name, const std::string& text) {
    Survey survey;
    return add_attempt(survey, name, [&text]() -> Result<Value> { return Value::copy_of(std::string_view(text)); });
  };
  const std::string record = with_seen_digest("firedrill.seen/1\nattempt 3\n");
  EXPECT_TRUE(asked("3.seen", record).ok());
  EXPECT_EQ(refusal(asked("4.seen", record)).code, Code::corrupted);
  EXPECT_THAT(refusal(asked("4.seen", record)).message, HasSubstr("attempts/4.seen is the record of attempt 3"));
  EXPECT_THAT(refusal(asked("3.seen", "x")).hint, HasSubstr("nobody knows which checkpoints count"));
  for (const char* name : {"03.seen", "x.seen", ".seen", "3.scene", "9999999999"}) {
    EXPECT_TRUE(asked(name, "not asked for").ok()) << name;
  }
  Survey survey;
  EXPECT_EQ(refusal(add_attempt(survey, "3.seen", []() -> Result<Value> { return injected_io_error(); })).code,
            Code::io_error);
}

TEST(Listing, ThatIsCutIsRefusedAndTwoThatContradictEachOtherToo) {
  Survey survey;
  survey.manifests = {id(4), id(2)};
  survey.claims = {1, 2};
  survey.seen = {{.attempt = 1}, {.attempt = 2, .accepted = {id(4)}}};
  const std::string whole(encode_survey(0, survey).text());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(refusal(decode_survey(Value::copy_of(std::string_view(whole).substr(0, size)))).code, Code::corrupted);
  }
  EXPECT_EQ(refusal(decode_survey(Value::copy_of(std::string_view(whole + "x")))).code, Code::corrupted);
  Survey other = survey;
  other.seen[1].accepted = {id(2)};
  const std::vector<Survey> both = {survey, other};
  EXPECT_EQ(refusal(union_of(both)).code, Code::mismatch);
  EXPECT_THAT(refusal(union_of(both)).message, HasSubstr("attempts/2.seen"));
  other.seen = {{.attempt = 3}};
  EXPECT_EQ(union_of(std::vector<Survey>{survey, other})->seen.size(), 3U);
}

TEST(Listing, OfOneRankThatReadsAnotherRecordEndsTheSearch) {
  const auto disk = two_checkpoints();
  expect_ok(TestAttempt(*disk, 2).train({}));
  const std::string honest = disk->at("attempts/2.seen");
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op != FileOp::open || operation.path != "attempts/2.seen") return std::nullopt;
    auto& inode = disk->now.at(operation.path);
    inode = std::make_shared<TestDisk::Inode>(*inode);
    inode->data = operation.rank == 2 ? with_seen_digest("firedrill.seen/1\nattempt 2\n") : honest;
    return std::nullopt;
  };
  const Error error = cause(TestAttempt(*disk, 3).train({}));
  EXPECT_EQ(error.code, Code::mismatch);
  EXPECT_THAT(error.message, HasSubstr("ranks read different contents of attempts/2.seen"));
}

TEST(Names, OfAKindThatIsNoneAndOfARunOfATensor) {
  EXPECT_EQ(to_string(static_cast<ShardKind>(7)), "?");
  const TensorSlot run{.name = "w", .shape = {10}, .begin = 4, .length = 2};
  EXPECT_EQ(name_of(run), "w[4:6]");
  EXPECT_EQ(name_of({.name = "w", .shape = {10}, .length = 10}), "w");
}

// Each read of this file gives a byte less than there is.
std::function<std::optional<Error>(const DiskOperation&)> short_reads(TestDisk& disk, std::string path) {
  return [&disk, path = std::move(path)](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::read && operation.path == path) disk.at(path).pop_back();
    return std::nullopt;
  };
}

TEST(ShortRead, OfAManifestAndOfAShardIsDamage) {
  for (const char* path : {"manifests/4-1-1", "shards/4-1-1/model-0"}) {
    const auto disk = two_checkpoints();
    disk->hook = short_reads(*disk, path);
    const Discovery found = discover_on(*disk, TestAttempt(*disk, 2));
    EXPECT_EQ(found.chosen, id(2)) << path;
    ASSERT_EQ(found.damaged.size(), 1U);
    EXPECT_THAT(found.damaged[0].what, HasSubstr(path));
    EXPECT_THAT(found.damaged[0].what, HasSubstr("bytes read"));
  }
}

// Finds, spoils the disk, restores.
std::vector<Status> restore_behind(TestDisk& disk, TestAttempt& attempt, const std::function<void()>& between,
                                   bool* kept = nullptr) {
  return attempt.run([&](const CheckpointContext& ctx, Protocol& protocol) -> Status {
    FD_TRY_VOID(protocol.claim_attempt(ctx));
    FD_TRY(const FindResult found, protocol.find(ctx));
    FD_TRY_VOID(ctx.parts.collectives.barrier(ctx.world, ctx.call("test")));
    if (ctx.world.me == 0) {
      const std::lock_guard lock(disk.mutex);
      between();
    }
    FD_TRY_VOID(ctx.parts.collectives.barrier(ctx.world, ctx.call("test")));
    StateView state = blank(test_state(attempt.job, 4, ctx.world.me, 4));
    Status restored = protocol.restore(ctx, found, state);
    if (kept && !restored && ctx.world.me == 0) *kept = !state[0].value;
    return restored;
  });
}

TEST(ShortRead, InRestoreIsRefused) {
  const auto disk = two_checkpoints();
  TestAttempt attempt(*disk, 2);
  const auto results = restore_behind(*disk, attempt, [&] { disk->hook = short_reads(*disk, "shards/4-1-1/model-0"); });
  EXPECT_EQ(cause(results).code, Code::corrupted);
  EXPECT_THAT(cause(results).message, HasSubstr("of model-0"));
}

class RefusesRestored : public Protocol {
  Status restored(const CheckpointContext&, const FindResult&, StateView&) override {
    return Error{.code = Code::mismatch, .message = "not this one"};
  }
};

TEST(Restore, ThatAStepRefusesLeavesTheStateAsItWas) {
  const auto disk = two_checkpoints();
  TestAttempt attempt(*disk, 2);
  attempt.make_protocol = [] { return std::make_unique<RefusesRestored>(); };
  bool kept = false;
  EXPECT_EQ(cause(restore_behind(
                      *disk, attempt, [] {}, &kept))
                .message,
            "not this one");
  EXPECT_TRUE(kept);
}

TEST(ForgedShard, OfAnotherProvenanceIsRefusedForEachFieldByItsHeaderAlone) {
  const auto whole = two_checkpoints();
  const std::string path = "shards/4-1-1/model-1";
  const ShardHeader honest = *parse_shard_header(whole->at(path));
  const std::vector<std::function<void(ShardHeader&)>> changes = {[](ShardHeader& h) { h.id.step = 9; },
                                                                  [](ShardHeader& h) { h.job.low += 1; },
                                                                  [](ShardHeader& h) { h.run_id[0] = 'x'; },
                                                                  [](ShardHeader& h) { h.rank = 3; },
                                                                  [](ShardHeader& h) { h.kind = ShardKind::extra; },
                                                                  [](ShardHeader& h) { h.world = 9; },
                                                                  [](ShardHeader& h) { h.payload += 1; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto disk = whole->copy();
    ShardHeader header = honest;
    changes[i](header);
    const std::string forged = encode_shard_header(header);
    disk->at(path).replace(0, forged.size(), forged);
    const Discovery found = discover_on(*disk, TestAttempt(*disk, 2));
    EXPECT_EQ(found.chosen, id(2)) << i;
    ASSERT_EQ(found.damaged.size(), 1U) << i;
    const char* said = i + 1 < changes.size() ? "in checkpoint" : "bytes behind its header, not";
    EXPECT_THAT(found.damaged[0].what, HasSubstr(said)) << i;
  }
}

TEST(Find, ACheckpointOfAnotherRunOrAJobWithOtherFieldsIsNamedAndNoDamage) {
  const auto disk = two_checkpoints();
  TestAttempt other(*disk, 2);
  other.run_id = "run-2";
  EXPECT_THAT(discover_on(*disk, other).trouble->message, HasSubstr("is of run run-1, this is run run-2"));
  other.run_id = "run-1";
  other.job_digest = Digest{.high = 1, .low = 2};
  std::string& text = disk->at("manifests/4-1-1");
  const std::string field = "\"model.layers\"";
  ASSERT_NE(text.find(field), std::string::npos);
  text.replace(text.find(field), field.size(), "\"model.floors\"");
  text.resize(text.rfind("\"digest\":\""));
  text += "\"digest\":\"" + digest_of(std::string_view(text)).hex() + "\"}\n";
  const std::string message = discover_on(*disk, other).trouble->message;
  EXPECT_THAT(message, HasSubstr("model.layers: nothing there"));
  EXPECT_THAT(message, HasSubstr("model.floors"));
  EXPECT_THAT(message, HasSubstr("there, nothing here"));
}

TEST(Find, AShardThatReadsDifferentlyEachTimeRejectsNothing) {
  const auto disk = two_checkpoints();
  const std::string path = "shards/4-1-1/model-0";
  bool dropped = false;
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.rank != 1 || operation.path != path) return std::nullopt;
    if (operation.op == FileOp::drop_cache) dropped = true;
    if (operation.op != FileOp::read || std::exchange(dropped, false)) return std::nullopt;
    return injected_io_error();
  };
  const Error error = cause(TestAttempt(*disk, 2).train({}));
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_THAT(error.message, HasSubstr("checkpoint 4-1-1 reads differently each time"));
  EXPECT_TRUE(error.retryable);
  EXPECT_FALSE(disk->has("rejected/4-1-1"));
}

class HostileDisk : public BothCatalogs {};
INSTANTIATE_TEST_SUITE_P(Catalogs, HostileDisk, both_catalogs, catalog_name);

TEST_P(HostileDisk, ErrorsThatPassOnTwoRanksRejectNothing) {
  const auto disk = two_checkpoints(GetParam());
  std::set<int> failed;  // rank 1 at its first look, and rank 3 at the one that is to confirm it
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    const bool fails = (operation.rank == 1 && operation.op == FileOp::open) ||
                       (operation.rank == 3 && operation.op == FileOp::drop_cache);
    if (!fails || !operation.path.starts_with("shards/4-1-1/") || !failed.insert(operation.rank).second) {
      return std::nullopt;
    }
    return injected_io_error();
  };
  TestAttempt attempt(*disk, 2);
  expect_ok(attempt.train({}));
  EXPECT_EQ(failed.size(), 2U);
  EXPECT_EQ(attempt.restored, id(4));
  EXPECT_TRUE(survey_of(*disk).rejected.empty());
}

TEST_P(HostileDisk, OnlyRejectedCheckpointsAreNoFreshStart) {
  const auto disk = two_checkpoints(GetParam());
  {
    TestFiles files(*disk, 0);
    const auto catalog = make_catalog(GetParam());
    for (const CheckpointId& one : {id(2), id(4)}) ASSERT_TRUE(catalog->mark_rejected(files, one).ok());
  }
  const Error error = cause(TestAttempt(*disk, 2).train({}));
  EXPECT_EQ(error.code, Code::corrupted);
  EXPECT_THAT(error.message, HasSubstr("only rejected checkpoints are left; the newest is 4-1-1"));
}

TEST_P(HostileDisk, OtherNumericsAreNotedAndNoError) {
  const auto disk = two_checkpoints(GetParam());
  TestAttempt attempt(*disk, 2);
  expect_ok(attempt.run([&](const CheckpointContext& ctx, Protocol& protocol) -> Status {
    RunIdentity identity = ctx.identity;
    identity.numerics_key = "numerics-2";
    const CheckpointContext here{
        .parts = ctx.parts, .job = ctx.job, .world = ctx.world, .identity = identity, .attempt = ctx.attempt};
    FD_TRY_VOID(protocol.claim_attempt(here));
    FD_TRY_VOID(protocol.find(here));
    return {};
  }));
  const auto notes = attempt.observer.all(EventKind::note);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(attempt.observer.text(notes[0].name),
            "checkpoint 4-1-1 was computed with numerics numerics-1, this attempt has numerics-2");
}

TEST_P(HostileDisk, ARankThatSavesForAnotherJobFailsTheTryBeforeTheCommit) {
  TestDisk disk(GetParam());
  TestAttempt attempt(disk);
  const auto results = attempt.run([&](const CheckpointContext& ctx, Protocol& protocol) -> Status {
    FD_TRY_VOID(protocol.claim_attempt(ctx));
    FD_TRY_VOID(protocol.find(ctx));
    RunIdentity identity = ctx.identity;
    if (ctx.world.me == 1) identity.job_digest.low += 1;
    const CheckpointContext here{.parts = ctx.parts, .job = ctx.job, .world = ctx.world, .identity = identity};
    const StateView state = test_state(attempt.job, 4, ctx.world.me, 2);
    FD_TRY_VOID(protocol.publish(here, 2, state, digest_of_state(state)));
    return {};
  });
  EXPECT_EQ(cause(results).code, Code::mismatch);
  EXPECT_THAT(cause(results).message, HasSubstr("rank 1 saves for job"));
  EXPECT_TRUE(survey_of(disk).manifests.empty());
}

TEST_P(HostileDisk, AFailedTryThatCannotBeRemovedIsSaidAndTheNextOneGoesOn) {
  TestDisk disk(GetParam());
  disk.hook = [](const DiskOperation& operation) -> std::optional<Error> {
    const bool writes = operation.op == FileOp::write && operation.path == "shards/2-1-1/model-1";
    const bool removes = operation.op == FileOp::remove && operation.path.starts_with("shards/2-1-1/");
    if (writes || removes) return injected_io_error();
    return std::nullopt;
  };
  TestAttempt attempt(disk);
  expect_ok(attempt.train({2}));
  ASSERT_EQ(attempt.published.size(), 1U);
  EXPECT_EQ(attempt.published[0].trial, 2);
  EXPECT_EQ(attempt.observer.all(EventKind::save_failed).size(), 2U);
  EXPECT_TRUE(disk.has("shards/2-1-1"));
}

// The coordinator's word on the commit arrives as a bare "well".
class CutsTheWord final : public ForwardingCollectives {
 public:
  using ForwardingCollectives::ForwardingCollectives;
  Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) override {
    FD_TRY(Value told, inner_.broadcast(group, value, root, call));
    return call.purpose == "checkpoint.commit" ? encode_ok(0) : told;
  }
};

TEST_P(HostileDisk, AWordOnTheCommitThatIsCutIsRefused) {
  TestDisk disk(GetParam());
  TestAttempt attempt(disk);
  const auto results = attempt.run([&](const CheckpointContext& ctx, Protocol& protocol) -> Status {
    CutsTheWord collectives(ctx.parts.collectives);
    Parts parts{ctx.parts.files, ctx.parts.transport, collectives,        ctx.parts.store,   ctx.parts.compute,
                ctx.parts.clock, ctx.parts.host,      ctx.parts.observer, ctx.parts.position};
    const CheckpointContext here{.parts = parts, .job = ctx.job, .world = ctx.world, .identity = ctx.identity};
    FD_TRY_VOID(protocol.claim_attempt(here));
    FD_TRY_VOID(protocol.find(here));
    const StateView state = test_state(attempt.job, 4, ctx.world.me, 2);
    FD_TRY_VOID(protocol.publish(here, 2, state, digest_of_state(state)));
    return {};
  });
  EXPECT_EQ(cause(results).code, Code::corrupted);
  EXPECT_THAT(cause(results).message, HasSubstr("word on the commit is not whole"));
}

class ExposesMarks : public Protocol {
 public:
  using Protocol::write_mark;
};

TEST(Marks, ThatAreThereAreMadeDurableAgain) {
  TestDisk disk;
  TestFiles files(disk, 0);
  ASSERT_TRUE(files.make_directory("validated").ok());
  ASSERT_TRUE(files.make_directory("tmp").ok());
  for (int time = 0; time < 2; ++time) {
    disk.durable.clear();
    ASSERT_TRUE(ExposesMarks::write_mark(files, "validated", id(2)).ok());
    EXPECT_TRUE(disk.durable.contains("validated/2-1-1"));
  }
}

}  // namespace
}  // namespace firedrill
