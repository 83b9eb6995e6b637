#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/json_tree.h"
#include "engine/ckpt/manifest.h"
#include "engine/ckpt/shard.h"
#include "engine/ckpt/structure.h"
#include "engine/ckpt/survey.h"
#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

std::string some_manifest() {
  TestDisk disk;
  expect_ok(TestAttempt(disk).train({2}));
  return disk.at("manifests/2-1-1");
}

// The text with one part replaced, and a digest that holds again.
std::string edited(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  text.resize(text.rfind("\"digest\":\""));
  return text + "\"digest\":\"" + digest_of(text).hex() + "\"}\n";
}

Error refusal(const std::string& text) {
  DirectCompute compute;
  const auto parsed = parse_manifest(compute, Value::copy_of(text));
  return parsed ? Error{.message = "accepted"} : parsed.error();
}

TEST(Manifest, SaysWhatTheCheckpointIsMadeOf) {
  DirectCompute compute;
  const auto parsed = parse_manifest(compute, Value::copy_of(some_manifest()));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(to_string(parsed->id()), "2-1-1");
  EXPECT_EQ(parsed->head().job, digest_of_job(test_job()));
  EXPECT_EQ(parsed->shards().size(), 12U);
  EXPECT_EQ(parsed->tensors().size(), 2U + 2U + 2U + 4U);
  EXPECT_EQ(parsed->text(parsed->head().layout), "dp=4");
  EXPECT_EQ(parsed->text(parsed->fields()[0].name), "model.layers");
  EXPECT_EQ(parsed->text(parsed->shards()[11].name), "extra-3");
  EXPECT_EQ(parsed->shards()[11].node, 1);
}

TEST(Manifest, EveryTruncationIsRefused) {
  const std::string text = some_manifest();
  for (std::size_t size = 0; size < text.size(); ++size) {
    ASSERT_EQ(refusal(text.substr(0, size)).code, Code::corrupted) << size;
  }
}

TEST(Manifest, ANameThatLeadsElsewhereIsRefusedAlthoughItsDigestHolds) {
  const std::string text = some_manifest();
  for (const char* directory : {"../shards/2-1-1", "shards/../../etc", "/etc", "shards//2-1-1", "shards/.hidden", ""}) {
    EXPECT_EQ(
        refusal(edited(text, "\"directory\":\"shards/2-1-1\"", "\"directory\":\"" + std::string(directory) + "\""))
            .code,
        Code::corrupted)
        << directory;
  }
  EXPECT_EQ(refusal(edited(text, "\"name\":\"model-0\"", "\"name\":\"../model-0\"")).code, Code::corrupted);
}

TEST(Manifest, WhatCannotBeIsRefusedAlthoughItsDigestHolds) {
  const std::string text = some_manifest();
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"\"schema\":\"firedrill.manifest/1\"", "\"schema\":\"firedrill.manifest/9\""},
      {"\"format\":1", "\"format\":0"},
      {"\"step\":2", "\"step\":-2"},
      {"\"step\":2", "\"step\":\"2\""},
      {"\"step\":2", "\"step\":2.5"},
      {"\"step\":2", "\"stop\":2"},
      {"\"world\":4", "\"world\":5"},
      {"\"world\":4", "\"world\":4000000000"},
      {"\"dtype\":\"f32\"", "\"dtype\":\"f33\""},
      {"\"shape\":[5,7]", "\"shape\":[5,8]"},
      {"\"shape\":[5,7]", "\"shape\":[1,1,1,5,7]"},
      {"\"shape\":[5,7]", "\"shape\":[4611686018427387904,4611686018427387904]"},
      {"\"shape\":[5,7]", "\"shape\":7"},
      {"\"rank\":0", "\"rank\":1"},
      {"\"pieces\":[[0,0,35", "\"pieces\":[[0,1,35"},
      {"\"pieces\":[[0,0,35", "\"pieces\":[[99,0,35"},
      {"\"pieces\":[[0,0,35", "\"pieces\":[[0,0,36"},
      {"\"pieces\":[[0,0,35,96", "\"pieces\":[[0,0,35,99999"},
      {"\"pieces\":[[0,0,35,96", "\"pieces\":[[0,0,35"},
      {"\"pieces\":[[", "\"pieces\":[[[["},
      {"\"fields\":[[", "\"fields\":[[1,"},
  };
  EXPECT_EQ(refusal(edited(text, "\"step\":2", "\"step\":3")).message, "accepted") << "the edit itself is not refused";
  for (const auto& [from, to] : edits) EXPECT_EQ(refusal(edited(text, from, to)).code, Code::corrupted) << to;
}

TEST(Manifest, WhatIsJsonIsSoForBothLibraries) {
  const std::string whole = some_manifest();
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string changed = whole;
    changed[at] = R"(x"0,[]{}:\ 9)"[at % 12];
    ASSERT_EQ(JsonTree::of(changed).has_value(), nlohmann::json::accept(changed)) << changed;
    if (JsonTree::of(changed)) ++accepted;
  }
  EXPECT_GT(accepted, 100U);
}

TEST(Manifest, OfTwoMembersOfANameTheLastCounts) {
  const std::string text = edited(some_manifest(), "\"world\":4", "\"world\":5,\"world\":4");
  EXPECT_EQ(refusal(text).message, "accepted");
}

TEST(Manifest, ANewerFormatIsSaidWithBothVersionsAndIsNoDamage) {
  const Error error = refusal(edited(some_manifest(), "\"format\":1", "\"format\":2"));
  EXPECT_EQ(error.code, Code::mismatch);
  EXPECT_THAT(error.message, HasSubstr("has format 2"));
  EXPECT_THAT(error.message, HasSubstr("reads formats up to 1"));
}

TEST(Manifest, ReportsThatDoNotFitTogetherAreNotCommitted) {
  TestDisk disk;
  const TestAttempt attempt(disk);
  DirectCompute compute;
  const RunIdentity identity = attempt.identity();
  std::vector<Value> reports;
  for (int rank = 0; rank < 4; ++rank) {
    const StateView state = test_state(attempt.job, 4, rank, 2);
    const EncodeScalars scalars{
        .step = 2, .attempt = 1, .trial = 1, .rank = rank, .world = 4, .job = identity.job_digest};
    const auto encoded = encode_shards(compute, scalars, encode_structure(state), identity.run, state);
    ASSERT_TRUE(encoded.ok());
    reports.push_back(encoded->report);
  }
  const auto build = [&](const std::vector<Value>& given, std::int64_t step) {
    return build_manifest(compute, {.step = step, .attempt = 1, .trial = 1}, identity.encoded,
                          Value::copy_of(std::string_view("shards/2-1-1")), Value::pack(given));
  };
  EXPECT_TRUE(build(reports, 2).ok());
  EXPECT_TRUE(build(reports, 3).failed_with(Code::mismatch)) << "reports of another step";
  EXPECT_FALSE(build({reports[0], reports[1], reports[2]}, 2).ok()) << "a rank is missing";
  EXPECT_FALSE(build({reports[1], reports[0], reports[2], reports[3]}, 2).ok()) << "ranks are swapped";
}

TEST(ShardHeader, EveryFlippedByteAndEveryTruncationIsRefused) {
  const std::string whole = encode_shard_header({.id = {.step = 2, .attempt = 1, .trial = 1},
                                                 .rank = 1,
                                                 .world = 4,
                                                 .kind = ShardKind::extra,
                                                 .job = digest_of(std::string_view("job")),
                                                 .run_id = "run-1",
                                                 .payload = 100});
  ASSERT_TRUE(parse_shard_header(whole).ok());
  EXPECT_EQ(parse_shard_header(whole)->run_id, "run-1");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x40);
    EXPECT_FALSE(parse_shard_header(flipped).ok()) << at;
    EXPECT_FALSE(parse_shard_header(whole.substr(0, at)).ok()) << at;
  }
}

TEST(Seen, EveryFlippedByteAndEveryTruncationIsRefused) {
  const Value whole = encode_seen({.attempt = 3, .accepted = {{.step = 4, .attempt = 2, .trial = 1}}});
  ASSERT_TRUE(parse_seen(whole.text()).ok());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped(whole.text());
    flipped[at] = static_cast<char>(flipped[at] ^ 0x40);
    EXPECT_FALSE(parse_seen(flipped).ok()) << at;
    EXPECT_FALSE(parse_seen(whole.text().substr(0, at)).ok()) << at;
  }
}

TEST(Names, OnlyThoseThatStayInTheirDirectoryAreSafe) {
  for (const char* name : {"model-0", "2-1-1", "a.b_c"}) EXPECT_TRUE(is_safe_name(name)) << name;
  for (const char* name : {"", ".", "..", ".x", "a/b", "/a", "a\\b", "a b"}) EXPECT_FALSE(is_safe_name(name)) << name;
}

}  // namespace
}  // namespace firedrill
