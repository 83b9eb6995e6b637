#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ckpt/survey.h"
#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Find : public BothCatalogs {};
INSTANTIATE_TEST_SUITE_P(Catalogs, Find, both_catalogs, catalog_name);

std::optional<Error> unreadable(const DiskOperation& operation, const std::string& path) {
  if (operation.op == FileOp::read && operation.path == path) {
    return Error{.code = Code::io_error, .message = path, .injected = true};
  }
  return std::nullopt;
}

TEST_P(Find, AnEmptyDirectoryIsAFreshStartAndIsRecordedAsSeen) {
  TestDisk disk(GetParam());
  TestAttempt attempt(disk);
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.observer.all(EventKind::started_fresh).size(), 4U);
  const Survey survey = survey_of(disk);
  EXPECT_THAT(survey.claims, ElementsAre(1));
  ASSERT_EQ(survey.seen.size(), 1U);
  EXPECT_THAT(survey.seen[0].accepted, IsEmpty());
  EXPECT_FALSE(discover_on(disk, attempt).trouble.has_value());
}

TEST_P(Find, TheNewestWholeOneIsChosenAndOlderOnesAreAccepted) {
  const auto disk = two_checkpoints(GetParam());
  TestAttempt attempt(*disk, 2);
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, id(4));
  const Survey survey = survey_of(*disk);
  ASSERT_EQ(survey.seen.size(), 2U);
  EXPECT_THAT(survey.seen[1].accepted, ElementsAre(id(4), id(2)));
}

// Each kind of damage to each file of the newest checkpoint.
struct Damaging {
  const char* name;
  std::function<void(TestDisk&, const std::string&)> apply;
};

std::vector<Damaging> damagings() {
  return {
      {"emptied", [](TestDisk& disk, const std::string& path) { disk.at(path).clear(); }},
      {"last byte cut", [](TestDisk& disk, const std::string& path) { disk.at(path).pop_back(); }},
      {"one byte more", [](TestDisk& disk, const std::string& path) { disk.at(path).push_back('\0'); }},
      {"zeros at full size",
       [](TestDisk& disk, const std::string& path) { disk.at(path).assign(disk.at(path).size(), '\0'); }},
      {"of the older checkpoint",
       [](TestDisk& disk, const std::string& path) {
         std::string older = path;
         older.replace(older.find("4-1-1"), 5, "2-1-1");
         disk.at(path) = disk.at(older);
       }},
  };
}

std::vector<std::string> files_of(const TestDisk& disk, const std::string& checkpoint) {
  std::vector<std::string> paths;
  for (const auto& [path, inode] : disk.now) {
    const bool copy = path.ends_with(manifest_copy) || path.ends_with(validated_copy);  // nobody reads them
    if (path == "manifests/" + checkpoint || (path.starts_with("shards/" + checkpoint + "/") && !copy)) {
      paths.push_back(path);
    }
  }
  return paths;
}

TEST_P(Find, EveryDamageToAnyFileIsRefusedAndTheOlderOneTaken) {
  const auto whole = two_checkpoints(GetParam());
  const auto paths = files_of(*whole, "4-1-1");
  ASSERT_EQ(paths.size(), GetParam() == CatalogKind::files ? 13U : 12U);
  for (const std::string& path : paths) {
    for (const Damaging& damaging : damagings()) {
      const auto disk = whole->copy();
      damaging.apply(*disk, path);
      TestAttempt attempt(*disk, 2);
      const Discovery found = discover_on(*disk, attempt);
      EXPECT_EQ(found.chosen, id(2)) << path << ": " << damaging.name;
      expect_ok(attempt.train({}));
      EXPECT_EQ(attempt.restored, id(2)) << path << ": " << damaging.name;
      EXPECT_THAT(survey_of(*disk).rejected, ElementsAre(id(4)));
      EXPECT_EQ(attempt.observer.all(EventKind::damage).size(), 1U);
      EXPECT_EQ(attempt.observer.all(EventKind::rejected).size(), 1U);
    }
  }
}

TEST(FindInFiles, EveryFlippedByteIsRefused) {
  const auto whole = two_checkpoints();
  const TestAttempt attempt(*whole, 2);
  for (const std::string& path : files_of(*whole, "4-1-1")) {
    const std::size_t size = whole->at(path).size();
    const std::size_t stride = path.starts_with("manifests/") ? 7 : 13;
    for (std::size_t at = 0; at < size; at += at < 200 ? 1 : stride) {
      char& byte = whole->at(path)[at];
      const char before = byte;
      byte = static_cast<char>(byte ^ 0x10);
      const Discovery found = discover_on(*whole, attempt);
      ASSERT_EQ(found.chosen, id(2)) << path << " at " << at;
      byte = before;
    }
  }
  EXPECT_EQ(discover_on(*whole, attempt).chosen, id(4));
}

TEST_P(Find, AMissingShardIsDamageAndAShardOfAnotherRankToo) {
  const auto whole = two_checkpoints(GetParam());
  const auto missing = whole->copy();
  missing->now.erase("shards/4-1-1/extra-2");
  const auto swapped = whole->copy();
  std::swap(swapped->now["shards/4-1-1/model-0"], swapped->now["shards/4-1-1/model-1"]);
  for (TestDisk* disk : {missing.get(), swapped.get()}) {
    TestAttempt attempt(*disk, 2);
    expect_ok(attempt.train({}));
    EXPECT_EQ(attempt.restored, id(2));
  }
}

// One provenance: the manifest's digests hold, and yet the shard was written for another step.
TEST(FindInFiles, AShardOfAnotherStepIsRefusedAlthoughTheManifestNamesItsDigest) {
  const auto disk = two_checkpoints();
  const std::string older = disk->at("shards/2-1-1/model-0");
  const std::string newer = disk->at("shards/4-1-1/model-0");
  std::string& manifest = disk->at("manifests/4-1-1");
  const std::string digest = digest_of(newer).hex();
  ASSERT_NE(manifest.find(digest), std::string::npos);
  manifest.replace(manifest.find(digest), digest.size(), digest_of(older).hex());
  manifest.resize(manifest.rfind("\"digest\":\""));
  manifest += "\"digest\":\"" + digest_of(manifest).hex() + "\"}\n";
  disk->at("shards/4-1-1/model-0") = older;
  const Discovery found = discover_on(*disk, TestAttempt(*disk, 2));
  EXPECT_EQ(found.chosen, id(2));
  ASSERT_EQ(found.damaged.size(), 1U);
  EXPECT_THAT(found.damaged[0].what, HasSubstr("in checkpoint 2-1-1"));
}

TEST_P(Find, ADamagedOneIsRejectedOnlyBehindAnOlderWholeOne) {
  const auto disk = two_checkpoints(GetParam());
  disk->at("shards/4-1-1/model-1")[200] ^= 1;
  disk->at("shards/2-1-1/model-1")[200] ^= 1;
  TestAttempt attempt(*disk, 2);
  const Error error = cause(attempt.train({}));
  EXPECT_EQ(error.code, Code::corrupted);
  EXPECT_THAT(error.message, HasSubstr("4-1-1"));
  EXPECT_THAT(survey_of(*disk).rejected, IsEmpty());
  EXPECT_EQ(survey_of(*disk).seen.size(), 1U) << "attempt 2 accepted nothing";
  EXPECT_TRUE(attempt.observer.all(EventKind::started_fresh).empty());
  EXPECT_TRUE(discover_on(*disk, attempt).trouble.has_value());
}

TEST_P(Find, ARejectedOneIsNeverChosenAgainAndGoesWithTheNextValidation) {
  const auto disk = two_checkpoints(GetParam());
  disk->at("shards/4-1-1/model-1")[200] ^= 1;
  expect_ok(TestAttempt(*disk, 2).train({}));
  TestAttempt attempt(*disk, 3);
  expect_ok(attempt.train({5}));
  EXPECT_EQ(attempt.restored, id(2));
  EXPECT_TRUE(attempt.observer.all(EventKind::damage).empty());
  EXPECT_FALSE(disk->has("shards/4-1-1"));
  EXPECT_THAT(survey_of(*disk).manifests, ElementsAre(id(5, 3), id(2))) << "a rejected one does not count as kept";
}

TEST(FindInFiles, AnUnreadableManifestIsDamageWhenAnotherRankSaysSoToo) {
  const auto disk = two_checkpoints();
  disk->hook = [](const DiskOperation& operation) { return unreadable(operation, "manifests/4-1-1"); };
  TestAttempt attempt(*disk, 2);
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, id(2));
  EXPECT_TRUE(disk->has("rejected/4-1-1"));
}

TEST(FindInFiles, AnUnreadableManifestIsNotAnAbsentOne) {
  TestDisk disk;
  expect_ok(TestAttempt(disk).train({2}));
  disk.hook = [](const DiskOperation& operation) { return unreadable(operation, "manifests/2-1-1"); };
  TestAttempt attempt(disk, 2);
  EXPECT_EQ(cause(attempt.train({})).code, Code::corrupted);
  EXPECT_TRUE(attempt.observer.all(EventKind::started_fresh).empty());
  EXPECT_FALSE(disk.has("rejected/2-1-1"));
}

TEST_P(Find, WhatOneRankCannotReadButAnotherCanRejectsNothing) {
  const auto disk = two_checkpoints(GetParam());
  disk->hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.rank != 3) return std::nullopt;
    return unreadable(operation, "shards/4-1-1/model-3");
  };
  TestAttempt attempt(*disk, 2);
  const Error error = cause(attempt.train({}));
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_THAT(error.message, HasSubstr("reads it well"));
  EXPECT_THAT(survey_of(*disk).rejected, IsEmpty());
}

TEST_P(Find, AnErrorThatIsGoneAtTheSecondLookIsForgiven) {
  const auto disk = two_checkpoints(GetParam());
  int failures = 0;
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (failures > 0) return std::nullopt;
    auto error = unreadable(operation, "shards/4-1-1/model-3");
    if (error) ++failures;
    return error;
  };
  TestAttempt attempt(*disk, 2);
  expect_ok(attempt.train({}));
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(attempt.restored, id(4));
}

TEST(FindInFiles, AStaleListingOnOneRankChangesNothing) {
  const auto disk = two_checkpoints();
  TestAttempt attempt(*disk, 2);
  attempt.hidden[2] = {"manifests/4-1-1"};
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, id(4));
}

TEST(FindInFiles, AManifestThatBecomesVisibleLateIsWaitedFor) {
  const auto disk = two_checkpoints();
  TestAttempt attempt(*disk, 2);
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    const bool early = attempt.clock.now() < std::chrono::seconds(3);
    if (early && operation.rank == 1 && operation.op == FileOp::open && operation.path == "manifests/4-1-1") {
      return Error{.code = Code::not_found, .message = operation.path};
    }
    return std::nullopt;
  };
  expect_ok(attempt.train({}));
  EXPECT_EQ(attempt.restored, id(4));
}

TEST(FindInFiles, AManifestThatVanishedEndsTheAttemptAndRejectsNothing) {
  const auto disk = two_checkpoints();
  disk->hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::open && operation.path == "manifests/4-1-1") {
      return Error{.code = Code::not_found, .message = operation.path};
    }
    return std::nullopt;
  };
  TestAttempt attempt(*disk, 2);
  EXPECT_EQ(cause(attempt.train({})).code, Code::unavailable);
  EXPECT_FALSE(disk->has("rejected/4-1-1"));
}

TEST(FindInFiles, AListingThatFailsOnOneRankEndsTheAttempt) {
  const auto disk = two_checkpoints();
  disk->hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.rank == 1 && operation.op == FileOp::list && operation.path == "manifests") {
      return Error{.code = Code::io_error, .message = "injected", .injected = true};
    }
    return std::nullopt;
  };
  TestAttempt attempt(*disk, 2);
  const Error error = cause(attempt.train({}));
  EXPECT_EQ(error.code, Code::io_error);
  EXPECT_TRUE(error.injected);
  EXPECT_TRUE(attempt.observer.all(EventKind::started_fresh).empty());
}

// A commit of attempt 1 lands when attempt 2 has already looked.
TEST(FindInFiles, ACommitThatLandsLateStaysInvisibleAndGoesWithRetention) {
  const auto late = two_checkpoints();
  const auto disk = late->copy();
  for (const std::string& path : files_of(*late, "4-1-1")) disk->now.erase(path);
  disk->now.erase("shards/4-1-1");
  disk->now.erase("validated/4-1-1");
  expect_ok(TestAttempt(*disk, 2).train({}));
  for (const auto& [path, inode] : late->now) disk->now.try_emplace(path, inode);

  TestAttempt attempt(*disk, 3);
  EXPECT_EQ(discover_on(*disk, attempt).chosen, id(2));
  expect_ok(attempt.train({3}));
  EXPECT_EQ(attempt.restored, id(2));
  EXPECT_FALSE(disk->has("manifests/4-1-1"));
  EXPECT_FALSE(disk->has("shards/4-1-1"));
  EXPECT_TRUE(disk->has("manifests/2-1-1")) << "an invisible one does not count as kept";
}

TEST(FindInFiles, ADamagedRecordOfWhatAnAttemptSawIsAnErrorNotAnEmptyOne) {
  const auto disk = two_checkpoints();
  expect_ok(TestAttempt(*disk, 2).train({}));
  disk->at("attempts/2.seen").clear();
  EXPECT_EQ(cause(TestAttempt(*disk, 3).train({})).code, Code::corrupted);
}

TEST(FindInFiles, WhatWasFoundInACacheIsDurableBeforeTheAttemptGoesOn) {
  const auto disk = two_checkpoints();  // nothing of it is durable: a copy has the visible tree only
  expect_ok(TestAttempt(*disk, 2).train({}));
  for (const char* path : {"manifests/4-1-1", "shards/4-1-1", "shards/4-1-1/model-0", "validated/4-1-1", "attempts/2",
                           "attempts/2.seen"}) {
    EXPECT_TRUE(disk->durable.contains(path)) << path;
  }
}

TEST_P(Find, AnAttemptIsClaimedOnceAndALaterClaimFencesIt) {
  TestDisk disk(GetParam());
  expect_ok(TestAttempt(disk, 2).train({2}));
  EXPECT_EQ(cause(TestAttempt(disk, 2).train({})).code, Code::already_exists);
  EXPECT_EQ(cause(TestAttempt(disk, 1).train({})).code, Code::fenced);
}

TEST_P(Find, NoStartBelowTheFloorUnlessItsCheckpointWasDamaged) {
  const auto disk = two_checkpoints(GetParam());
  TestAttempt higher(*disk, 2);
  higher.floor = 6;
  const Error error = cause(higher.train({}));
  EXPECT_EQ(error.code, Code::mismatch);
  EXPECT_THAT(error.message, HasSubstr("step 6 was acknowledged"));

  TestDisk empty(GetParam());
  TestAttempt fresh(empty, 1);
  fresh.floor = 2;
  EXPECT_EQ(cause(fresh.train({})).code, Code::mismatch);

  disk->at("shards/4-1-1/model-1")[200] ^= 1;
  TestAttempt damaged(*disk, 3);
  damaged.floor = 4;
  expect_ok(damaged.train({}));
  EXPECT_EQ(damaged.restored, id(2));
  TestAttempt again(*disk, 4);  // rejected by the attempt before, which may have died since
  again.floor = 4;
  expect_ok(again.train({}));
  ASSERT_EQ(again.observer.all(EventKind::rejected).size(), 1U);
  EXPECT_LT(again.observer.place_of(EventKind::rejected), again.observer.place_of(EventKind::found))
      << "nobody starts below the floor before it is said why";
}

TEST(FindInFiles, ARejectionWhoseSyncFailedIsMadeAnewByWhoeverStartsBelowTheFloor) {
  const auto disk = two_checkpoints();
  disk->at("shards/4-1-1/model-1")[200] ^= 1;
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op != FileOp::sync_directory || operation.path != "rejected") return std::nullopt;
    return disk->has("rejected/4-1-1") ? std::optional(injected_io_error()) : std::nullopt;
  };
  TestAttempt first(*disk, 2);
  first.floor = 4;
  EXPECT_EQ(cause(first.train({})).code, Code::io_error);
  ASSERT_TRUE(disk->has("rejected/4-1-1"));
  disk->hook = nullptr;
  TestAttempt second(*disk, 3);
  second.floor = 4;
  expect_ok(second.train({}));
  ASSERT_EQ(second.restored, id(2));
  EXPECT_TRUE(disk->after_power_loss()->has("rejected/4-1-1"))
      << "a later attempt with the same floor finds neither the checkpoint nor why it does not count";
}

TEST_P(Find, ACheckpointOfAnotherJobNamesEachChangedField) {
  const auto disk = two_checkpoints(GetParam());
  TestAttempt attempt(*disk, 2);
  attempt.job.optimizer.lr = 0.5;
  attempt.job.seed = 9;
  const Error error = cause(attempt.train({}));
  EXPECT_EQ(error.code, Code::mismatch);
  EXPECT_THAT(error.message, HasSubstr("optimizer.lr: 0.003 there, 0.5 here"));
  EXPECT_THAT(error.message, HasSubstr("seed: 1 there, 9 here"));
  EXPECT_THAT(error.message, HasSubstr("with another optimizer convergence must be revalidated"));
  EXPECT_EQ(discover_on(*disk, attempt).trouble->code, Code::mismatch);
}

TEST_P(Find, ACheckpointOfAnotherPrecisionAndScalingAsksForRevalidation) {
  const auto disk = two_checkpoints(GetParam());
  TestAttempt attempt(*disk, 2);
  attempt.job.precision = {.parameters = Precision::fp16, .scaler = {.dynamic = true}};
  const Error error = cause(attempt.train({}));
  EXPECT_EQ(error.code, Code::mismatch);
  EXPECT_THAT(error.message, HasSubstr("precision.parameters: fp32 there, fp16 here"));
  EXPECT_THAT(error.message, HasSubstr("precision.scaler.dynamic: false there, true here"));
  EXPECT_THAT(error.message, HasSubstr("with another precision and scaling convergence must be revalidated"));
  TestAttempt seeded(*disk, 3);
  seeded.job.seed = 9;
  EXPECT_THAT(cause(seeded.train({})).message, Not(HasSubstr("revalidated")));
}

TEST_P(Find, AnotherCorpusAndAnotherRunAreNamed) {
  const auto disk = two_checkpoints(GetParam());
  TestAttempt corpus(*disk, 2);
  corpus.corpus = digest_of(std::string_view("changed"));
  const Error error = cause(corpus.train({}));
  EXPECT_EQ(error.code, Code::mismatch);
  EXPECT_THAT(error.message, HasSubstr(corpus.corpus.hex()));
  TestAttempt run(*disk, 3);
  run.run_id = "run-2";
  EXPECT_THAT(cause(run.train({})).message, HasSubstr("is of run run-1, this is run run-2"));
}

}  // namespace
}  // namespace firedrill
