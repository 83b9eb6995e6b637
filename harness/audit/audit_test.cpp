// The audit on the frozen example in golden/format-1, whole and damaged in every way that the format names.
#include "harness/audit/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "harness/audit/contents.h"
#include "harness/audit/test_root.h"

namespace firedrill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string problems(const Root& root) {
  const AuditReport report = root.audit();
  const AuditedCheckpoint* checkpoint = report.find(frozen_id);
  EXPECT_NE(checkpoint, nullptr);
  EXPECT_FALSE(checkpoint->intact());
  EXPECT_TRUE(report.damaged());
  EXPECT_THAT(in_words(report), HasSubstr("DAMAGED"));
  std::string all;
  for (const std::string& problem : checkpoint->contents->problems) all += problem + '\n';
  return all;
}

TEST(Audit, FindsTheFrozenExampleWhole) {
  const AuditReport report = Root().audit();
  EXPECT_THAT(report.problems, ElementsAre());
  EXPECT_FALSE(report.damaged());
  EXPECT_THAT(report.attempts, ElementsAre(1));
  ASSERT_EQ(report.checkpoints.size(), 1U);
  const AuditedCheckpoint& checkpoint = report.checkpoints[0];
  EXPECT_EQ(checkpoint.id, frozen_id);
  EXPECT_TRUE(checkpoint.committed && checkpoint.visible && checkpoint.validated && checkpoint.intact());
  EXPECT_FALSE(checkpoint.rejected || checkpoint.tombstone);
  EXPECT_EQ(report.newest(), &checkpoint);
  const CheckpointContents& contents = *checkpoint.contents;
  EXPECT_THAT(contents.problems, ElementsAre());
  EXPECT_TRUE(contents.provenance_coherent);
  EXPECT_EQ(contents.world, 4);
  EXPECT_EQ(contents.shards, 12);
  EXPECT_GT(contents.tensors.size(), 3U);
  EXPECT_NE(contents.state, Digest{});
  EXPECT_THAT(in_words(report), HasSubstr("2-1-1  intact, validated"));
}

TEST(Audit, DigestsATensorAsOneThoughItLiesInManyPieces) {
  Root root;
  const AuditReport report = root.audit();
  const Json body = Json::parse(root.manifest());
  int in_many = 0;
  for (const AuditedTensor& tensor : report.checkpoints.at(0).contents->tensors) {
    std::map<std::int64_t, std::string> parts;  // by begin, straight from the files
    for (const Json& shard : body["shards"]) {
      for (const Json& piece : shard["pieces"]) {
        const Json& entry = body["tensors"][piece[0].get<std::size_t>()];
        if (entry["name"] != tensor.name) continue;
        const std::size_t width = entry["dtype"] == "i64" ? 8 : entry["dtype"] == "u8" ? 1 : 4;
        parts[piece[1].get<std::int64_t>()] =
            root.shard(shard["name"])
                .substr(piece[3].get<std::size_t>(),
                        (piece[2].get<std::size_t>() - piece[1].get<std::size_t>()) * width);
      }
    }
    ASSERT_EQ(parts.size(), tensor.pieces.size());
    std::string whole;
    for (const auto& [begin, part] : parts) whole += part;
    EXPECT_EQ(tensor.digest, digest_of(std::string_view(whole))) << tensor.name;
    in_many += parts.size() > 1;
  }
  EXPECT_GT(in_many, 0);
}

TEST(Audit, SeesEveryFlippedByteOfEveryFileThatCounts) {
  const Root whole;
  for (const auto& [path, text] : whole.files) {
    if (!path.starts_with("shards/") && !path.starts_with("manifests/")) continue;
    for (std::size_t at = 0; at < text.size(); at += path.starts_with("manifests/") ? 7 : 13) {
      Root root;
      root.files.at(path)[at] = static_cast<char>(root.files.at(path)[at] ^ 1);
      ASSERT_TRUE(root.audit().damaged()) << path << " at " << at;
    }
  }
}

TEST(Audit, SeesEveryTruncation) {
  const Root whole;
  for (const auto& [path, text] : whole.files) {
    if (!path.starts_with("shards/") && !path.starts_with("manifests/") && !path.ends_with(".seen")) continue;
    for (const std::size_t size : {std::size_t{0}, std::size_t{8}, text.size() / 2, text.size() - 1}) {
      if (size >= text.size()) continue;
      Root root;
      root.files.at(path).resize(size);
      ASSERT_TRUE(root.audit().damaged()) << path << " cut to " << size;
    }
  }
}

TEST(Audit, SaysWhatIsWrongWithAShard) {
  Root missing;
  missing.files.erase("shards/2-1-1/model-2");
  EXPECT_THAT(problems(missing), HasSubstr("model-2: is missing"));
  Root longer;
  longer.shard("model-1") += 'x';
  EXPECT_THAT(problems(longer), HasSubstr("model-1: "));
  EXPECT_THAT(problems(longer), HasSubstr("bytes long, not "));
  Root torn;
  torn.shard("optimizer-0").back() ^= 1;
  EXPECT_THAT(problems(torn), HasSubstr("optimizer-0: digest "));
}

TEST(Audit, SeesAPieceWhoseBytesAreNotItsOwn) {
  Root root;
  root.change_shard("model-0", [](std::string& shard) { shard.back() ^= 1; });
  EXPECT_THAT(problems(root), HasSubstr("model-0: elements "));
  EXPECT_THAT(problems(root), HasSubstr("have digest "));
}

TEST(Audit, SeesAShardOfAnotherSave) {
  const std::vector<std::pair<std::size_t, std::string>> fields = {
      {24, "checkpoint 2-9-1"}, {28, "checkpoint 2-1-9"}, {16, "checkpoint 9-1-1"}};
  for (const auto& [offset, words] : fields) {
    Root root;
    root.change_shard("model-3", [&](std::string& shard) { put_in_header(shard, offset, std::int32_t{9}); });
    EXPECT_THAT(problems(root), HasSubstr(words));
    EXPECT_FALSE(root.audit().checkpoints[0].contents->provenance_coherent);
  }
  Root other_run;
  other_run.change_shard("model-3", [](std::string& shard) { put_in_header(shard, 72, 'X'); });
  EXPECT_THAT(problems(other_run), HasSubstr("model-3: is of run X"));
  Root other_job;
  other_job.change_shard("model-3", [](std::string& shard) { put_in_header(shard, 48, std::uint64_t{0}); });
  EXPECT_THAT(problems(other_job), HasSubstr("model-3: is of run"));
}

TEST(Audit, SeesAShardOfAnotherRankOrKind) {
  Root rank;
  rank.change_shard("model-3", [](std::string& shard) { put_in_header(shard, 32, std::int32_t{1}); });
  EXPECT_THAT(problems(rank), HasSubstr("model-3: says it is model-1 of 4 ranks"));
  Root kind;
  kind.change_shard("model-3", [](std::string& shard) { put_in_header(shard, 40, std::int32_t{7}); });
  EXPECT_THAT(problems(kind), HasSubstr("model-3: says it is (kind 7)-3 of 4 ranks"));
  Root payload;
  payload.change_shard("model-3", [](std::string& shard) { put_in_header(shard, 64, std::int64_t{-1}); });
  EXPECT_THAT(problems(payload), HasSubstr("bytes behind its front, not -1"));
}

TEST(Audit, SeesAFrontThatIsNotWhole) {
  Root changed;
  changed.change_shard("model-3", [](std::string& shard) { shard[20] ^= 1; });
  EXPECT_THAT(problems(changed), HasSubstr("model-3: the digest of its front does not hold"));
  Root sizes;
  sizes.change_shard("model-3", [](std::string& shard) { shard[12] ^= 1; });
  EXPECT_THAT(problems(sizes), HasSubstr("model-3: its front is not as long as it says"));
  Root magic;
  magic.change_shard("model-3", [](std::string& shard) { shard[0] ^= 1; });
  EXPECT_THAT(problems(magic), HasSubstr("model-3: it does not begin as a shard does"));
  Root version;
  version.change_shard("model-3", [](std::string& shard) { shard[8] = 2; });
  EXPECT_THAT(problems(version), HasSubstr("model-3: format 2 is not known"));
  Root run;
  run.change_shard("model-3", [](std::string& shard) { shard[47] = '\x7f'; });
  EXPECT_THAT(problems(run), HasSubstr("its front is cut off or its run id is too long"));
}

TEST(Audit, SeesAManifestUnderAnotherName) {
  Root root;
  root.files["manifests/3-1-1"] = root.manifest();
  const AuditReport report = root.audit();
  const AuditedCheckpoint* checkpoint = report.find({.step = 3, .attempt = 1, .trial = 1});
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_FALSE(checkpoint->intact());
  EXPECT_FALSE(checkpoint->contents->provenance_coherent);
  EXPECT_THAT(checkpoint->contents->problems, ElementsAre("the manifest is of checkpoint 2-1-1"));
}

TEST(Audit, RefusesManifestsThatCannotBe) {
  const auto refused = [](const std::function<void(Json&)>& change) {
    Root root;
    root.change_manifest(change);
    return problems(root);
  };
  EXPECT_THAT(refused([](Json& m) { m["format"] = 2; }), HasSubstr("format 2 is not known"));
  EXPECT_THAT(refused([](Json& m) { m["schema"] = "other/1"; }), HasSubstr("schema other/1 is not known"));
  EXPECT_THAT(refused([](Json& m) { m.erase("provenance"); }), HasSubstr("provenance is missing"));
  EXPECT_THAT(refused([](Json& m) { m["world"] = 1e30; }), HasSubstr("world is not a whole number"));
  EXPECT_THAT(refused([](Json& m) { m["world"] = -1; }), HasSubstr("world is not a whole number"));
  EXPECT_THAT(refused([](Json& m) { m["world"] = 5; }), HasSubstr("12 shards of 5 ranks"));
  EXPECT_THAT(refused([](Json& m) { m["directory"] = "shards/../manifests"; }),
              HasSubstr("cannot be where shards lie"));
  EXPECT_THAT(refused([](Json& m) { m["shards"][0]["name"] = "../../x"; }), HasSubstr("not model-0"));
  EXPECT_THAT(refused([](Json& m) { m["shards"][1] = m["shards"][0]; }), HasSubstr("not optimizer-0"));
  EXPECT_THAT(refused([](Json& m) { m["tensors"][1] = m["tensors"][0]; }), HasSubstr("is listed twice"));
  EXPECT_THAT(refused([](Json& m) { m["tensors"][0]["dtype"] = "f64"; }), HasSubstr("type f64, which is not known"));
  EXPECT_THAT(refused([](Json& m) { m["tensors"][0]["shape"] = {1, 1, 1, 1, 1}; }), HasSubstr("too many dimensions"));
  EXPECT_THAT(refused([](Json& m) {
                m["tensors"][0]["shape"] = {1LL << 40, 1LL << 40};
              }),
              HasSubstr("too many elements"));
  EXPECT_THAT(refused([](Json& m) { m["shards"][0]["pieces"][0][0] = 9999; }), HasSubstr("is of tensor 9999 of"));
  EXPECT_THAT(refused([](Json& m) { m["shards"][0]["pieces"][0][2] = 1LL << 40; }), HasSubstr("cannot be: it has"));
  EXPECT_THAT(refused([](Json& m) { m["shards"][0]["pieces"][0][3] = 1LL << 40; }),
              HasSubstr("lie outside of model-0"));
  EXPECT_THAT(refused([](Json& m) { m["shards"][0]["pieces"][0][4] = "zz"; }), HasSubstr("is not a digest"));
  EXPECT_THAT(refused([](Json& m) { m["shards"][0]["pieces"][0] = {1}; }), HasSubstr("is not five values"));
  EXPECT_THAT(refused([](Json& m) { m["shards"][0]["pieces"] = Json::array(); }), HasSubstr("are in no piece"));
  EXPECT_THAT(refused([](Json& m) { m["shards"][0]["pieces"].push_back(m["shards"][0]["pieces"][0]); }),
              HasSubstr("are in two pieces"));
  EXPECT_THAT(refused([](Json& m) { std::swap(m["shards"][0]["pieces"][0], m["shards"][0]["pieces"][1]); }),
              HasSubstr("no piece begins at byte"));
}

TEST(Audit, KeepsMarksApartFromContents) {
  Root root;
  root.files["rejected/2-1-1"] = "";
  root.files["tombstones/1-1-1"] = "";
  root.files["validated/4-1-1"] = "";
  root.files["shards/6-1-1/model-0"] = "half";
  root.files["manifests/readme"] = "";
  const AuditReport report = root.audit();
  ASSERT_EQ(report.checkpoints.size(), 4U);
  EXPECT_TRUE(report.checkpoints[0].tombstone && !report.checkpoints[0].committed);
  EXPECT_TRUE(report.checkpoints[1].rejected && report.checkpoints[1].intact());
  EXPECT_TRUE(report.checkpoints[2].validated && !report.checkpoints[2].intact());
  EXPECT_FALSE(report.checkpoints[3].committed);
  EXPECT_THAT(report.checkpoints[3].contents->problems, ElementsAre("it has no manifest"));
  EXPECT_EQ(report.newest(), nullptr);
  EXPECT_THAT(report.problems, ElementsAre("manifests/readme does not belong there"));
}

TEST(Audit, CallsAValidatedCheckpointWithoutItsManifestDamageUnlessANewerOneStands) {
  Root lost;
  lost.files["validated/4-1-1"] = "";
  EXPECT_TRUE(lost.audit().damaged()) << "2-1-1 is older";
  Root retired;
  retired.files["validated/1-1-1"] = "";
  EXPECT_FALSE(retired.audit().damaged()) << "a mark that retention had no time to remove";
}

TEST(Audit, HidesWhatALaterAttemptDidNotAccept) {
  const auto record = [](const std::string& ids) {
    const std::string body = "firedrill.seen/1\nattempt 2\n" + ids;
    return body + "digest " + digest_of(std::string_view(body)).hex() + "\n";
  };
  Root accepted;
  accepted.files["attempts/2.seen"] = record("2-1-1\n");
  EXPECT_TRUE(accepted.audit().checkpoints[0].visible);
  Root late;
  late.files["attempts/2.seen"] = record("");
  EXPECT_FALSE(late.audit().checkpoints[0].visible);
  EXPECT_EQ(late.audit().newest(), nullptr);
  Root misplaced;
  misplaced.files["attempts/3.seen"] = record("");
  EXPECT_TRUE(misplaced.audit().damaged());
  EXPECT_THAT(misplaced.audit().problems, ElementsAre("attempts/3.seen: is of attempt 2"));
}

TEST(Audit, AnEmptyRootHoldsNothing) {
  Root root;
  root.files.clear();
  const AuditReport report = root.audit();
  EXPECT_TRUE(report.checkpoints.empty());
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(in_words(report), "no checkpoints\n");
}

TEST(Audit, ReadsFilesThatAreTooLargeToHoldPartByPart) {
  const Root root;
  const auto disk = root.disk();
  const auto view = disk->files({});
  const auto manifest = auditing::decode_manifest(root.files.at("manifests/2-1-1"));
  ASSERT_TRUE(manifest);
  std::vector<auditing::ShardFile> shards;
  for (const auditing::Shard& shard : manifest->shards) {
    std::int64_t held = auditing::held_max;
    shards.push_back(auditing::open_shard(*view, "shards/2-1-1/" + shard.name, shard.size, held));
    ASSERT_FALSE(shards.back().whole);
    ASSERT_TRUE(shards.back().file);
  }
  const auto contents = auditing::decode_contents(frozen_id, *manifest, shards);
  EXPECT_TRUE(contents->intact);
  EXPECT_EQ(contents->state, root.audit().checkpoints[0].contents->state);
}

}  // namespace
}  // namespace firedrill
