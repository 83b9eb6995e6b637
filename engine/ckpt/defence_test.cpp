// What parsers say to bytes that are cut, forged or contradict each other. Texts are damaged under digests that hold,
// or no damage would ever get past the digest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/fuzz_input.h"
#include "engine/ckpt/manifest.h"
#include "engine/ckpt/restore_plan.h"
#include "engine/ckpt/shard.h"
#include "engine/ckpt/structure.h"
#include "engine/ckpt/survey.h"
#include "engine/ckpt/test_run.h"
#include "engine/ckpt/wire.h"

namespace firedrill {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

Value bytes(std::string_view text) { return Value::copy_of(text); }

TEST(WordOfARank, ThatIsNotWholeIsAnErrorWhichNamesTheRank) {
  EXPECT_FALSE(error_in(encode_ok(3), 3, 4).has_value());
  for (const Value& nothing : {Value(), Value::pack({encode_ok(3)})}) {
    const auto error = error_in(nothing, 3, 4);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, Code::corrupted);
    EXPECT_EQ(error->message, "rank 3 gave nothing");
  }
  const Error sent{.code = Code::io_error, .message = "m", .hint = "h", .retryable = true, .injected = true};
  const std::string whole(encode_error(3, sent).text());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto error = error_in(bytes(whole.substr(0, size)), 3, 4);
    ASSERT_TRUE(error.has_value()) << size;
    EXPECT_EQ(error->code, Code::corrupted) << size;
    EXPECT_EQ(error->message, "what rank 3 gave is not whole") << size;
  }
  EXPECT_EQ(error_in(bytes(whole + "x"), 3, 4)->message, "what rank 3 gave is not whole");
  std::string code = whole;
  code[8] = 100;
  EXPECT_EQ(error_in(bytes(code), 3, 4)->code, Code::corrupted);
  std::string word = whole;
  word[5] = 1;
  EXPECT_EQ(error_in(bytes(word), 3, 4)->message, "what rank 3 gave is not whole") << "and not what another rank gave";
}

TEST(WordOfARank, KeepsTheErrorAndNamesTheRank) {
  const Error sent{.code = Code::no_space, .message = "m", .hint = "h", .retryable = true, .injected = true};
  const auto named = error_in(encode_status(2, Status(Error(sent))), 2, 4);
  EXPECT_EQ(named->code, Code::no_space);
  EXPECT_EQ(named->message, "rank 2: m");
  EXPECT_EQ(named->hint, "h");
  EXPECT_TRUE(named->retryable);
  EXPECT_TRUE(named->injected);
  EXPECT_FALSE(error_in(encode_status(2, Status()), 2, 4).has_value());
}

// As a rank is left that did not take part in the exchange, and goes on with what it gave in all places.
TEST(WordOfARank, InThePlaceOfAnothersIsNoWordOfThat) {
  const Error sent{.code = Code::io_error, .message = "m"};
  for (const Value& of_rank_0 : {encode_ok(0), encode_error(0, sent)}) {
    const auto error = error_in(of_rank_0, 1, 4);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, Code::mismatch);
    EXPECT_EQ(error->message, "in the place of what rank 1 gives stands what another rank gave");
  }
}

TEST(Errors, OnlyDeathFencingAndAbortEndTheCallAndOnlyBadBytesAreDamage) {
  for (const Code code : {Code::dead, Code::fenced, Code::aborted, Code::corrupted, Code::io_error, Code::no_space}) {
    EXPECT_EQ(ends_the_call(Error{.code = code}), code <= Code::aborted);
    EXPECT_EQ(is_damage(Error{.code = code}), code == Code::corrupted || code == Code::io_error);
  }
}

TEST(Reader, IsOnAnotherNodeIfThereIsOneAndEveryRankReadsForOneWithEqualNodes) {
  for (int per_node = 1; per_node <= 4; ++per_node) {
    for (int world = 1; world <= 8; ++world) {
      Job job = test_job();
      job.cluster.ranks_per_node = per_node;
      std::set<int> readers;
      for (int owner = 0; owner < world; ++owner) {
        const int reader = reader_of(job, world, owner);
        readers.insert(reader);
        EXPECT_TRUE(reader >= 0 && reader < world);
        EXPECT_EQ(node_of(job, reader) == node_of(job, owner), world <= per_node) << per_node << " " << world;
        EXPECT_EQ(reader == owner, world == 1);
      }
      if (world % per_node != 0 && world > per_node) continue;
      EXPECT_EQ(static_cast<int>(readers.size()), world);
    }
  }
}

// A manifest of one rank, to be edited, and its text with a digest that holds.
Json one_manifest() {
  TestDisk disk;
  expect_ok(TestAttempt(disk, 1, 1).train({2}));
  return Json::parse(disk.at("manifests/2-1-1"));
}

Error refusal_of(const Json& manifest) {
  DirectCompute compute;
  Json body = manifest;
  if (body.is_object()) body.erase("digest");
  std::string text = body.dump();
  text.back() = ',';
  return refusal(parse_manifest(compute, bytes(text + "\"digest\":\"" + digest_of(text).hex() + "\"}\n")));
}

TEST(ManifestFields, EachOneThatIsMissingOrOfAnotherTypeIsNamed) {
  const Json whole = one_manifest();
  ASSERT_EQ(refusal_of(whole).message, "accepted");
  const std::vector<std::string> paths = {
      "/schema",         "/format",          "/software",        "/provenance",
      "/provenance/run", "/provenance/job",  "/provenance/step", "/provenance/attempt",
      "/provenance/try", "/layout",          "/corpus",          "/numerics",
      "/fields",         "/world",           "/state",           "/directory",
      "/tensors",        "/tensors/0/name",  "/tensors/0/dtype", "/tensors/0/shape",
      "/shards",         "/shards/0/name",   "/shards/0/rank",   "/shards/0/node",
      "/shards/0/size",  "/shards/0/digest", "/shards/0/pieces"};
  for (const std::string& path : paths) {
    const Json::json_pointer at(path);
    const std::string name = at.back();
    Json missing = whole;
    missing[at.parent_pointer()].erase(name);
    EXPECT_EQ(refusal_of(missing).code, Code::corrupted) << path;
    EXPECT_THAT(refusal_of(missing).message, HasSubstr("`" + name + "`")) << path;
    for (const Json& other : {Json(), Json(true), Json(-1), Json(1.5), Json("\xc2\xa7"), Json(Json::object())}) {
      Json changed = whole;
      changed[at] = other;
      const bool another_text = whole[at].is_string() && other.is_string() && refusal_of(changed).message == "accepted";
      if (another_text) continue;
      EXPECT_EQ(refusal_of(changed).code, Code::corrupted) << path << " " << other;
    }
  }
}

TEST(ManifestFields, APieceIsRefusedForEachOfItsNumbers) {
  const Json whole = one_manifest();
  for (std::size_t i = 0; i < 5; ++i) {
    Json changed = whole;
    changed["shards"][0]["pieces"][0][i] = -1;
    EXPECT_EQ(refusal_of(changed).code, Code::corrupted) << i;
  }
  for (const Json& piece : {Json(1), Json(Json::array()), Json::array({0, 5, 3, 0, digest_of("").hex()})}) {
    Json changed = whole;
    changed["shards"][0]["pieces"][0] = piece;
    EXPECT_EQ(refusal_of(changed).code, Code::corrupted) << piece;
  }
  Json offset = whole;
  offset["shards"][0]["pieces"][0][3] = whole["shards"][0]["size"].get<std::int64_t>() + 1;
  EXPECT_THAT(refusal_of(offset).message, HasSubstr("outside of its tensor or its file"));
}

TEST(ManifestFields, AJobFieldMustBeAPairOfTexts) {
  const Json whole = one_manifest();
  for (const Json& field : {Json("a"), Json::array({"a"}), Json::array({"a", 1}), Json::array({1, "a"})}) {
    Json changed = whole;
    changed["fields"][0] = field;
    EXPECT_THAT(refusal_of(changed).message, HasSubstr("not a pair of texts")) << field;
  }
}

TEST(ManifestFields, PiecesThatLeaveAGapOrCoverNothingAreRefused) {
  const Json whole = one_manifest();
  Json none = whole;
  none["shards"][0]["pieces"] = Json::array();
  EXPECT_THAT(refusal_of(none).message, HasSubstr("pieces hold 0 of the"));
  Json twice = whole;
  twice["shards"][0]["pieces"].push_back(whole["shards"][0]["pieces"][0]);
  EXPECT_THAT(refusal_of(twice).message, HasSubstr("a gap or overlap"));
}

TEST(ManifestFields, AnEmptyTensorAndUnknownSoftwareAreNoDamage) {
  Json empty = one_manifest();
  empty["tensors"].push_back({{"name", "none"}, {"dtype", "u8"}, {"shape", {0, 1 << 30, 1 << 30}}});
  EXPECT_EQ(refusal_of(empty).message, "accepted");
  Json newer = one_manifest();
  newer["format"] = 7;
  newer["software"] = 7;
  EXPECT_EQ(refusal_of(newer).code, Code::mismatch);
  EXPECT_THAT(refusal_of(newer).message, HasSubstr("unknown software"));
}

TEST(ManifestFields, WhatIsNoJsonOrEndsOtherwiseIsRefusedAlthoughItsDigestHolds) {
  DirectCompute compute;
  for (const char* text : {"{]", "[1,", "{\"a\":1,"}) {
    const std::string body = text;
    const auto ended = body + "\"digest\":\"" + digest_of(body).hex() + "\"}\n";
    EXPECT_EQ(refusal(parse_manifest(compute, bytes(ended))).code, Code::corrupted) << text;
    const auto otherwise = body + "\"dogest\":\"" + digest_of(body).hex() + "\"}\n";
    EXPECT_THAT(refusal(parse_manifest(compute, bytes(otherwise))).message, HasSubstr("end with its digest"));
    const auto no_hex = body + "\"digest\":\"" + std::string(32, 'x') + "\"}\n";
    EXPECT_THAT(refusal(parse_manifest(compute, bytes(no_hex))).message, HasSubstr("end with its digest"));
  }
}

// A header whose digest holds, with one word changed.
std::string forged(std::string header, std::size_t at, std::uint32_t word) {
  std::memcpy(header.data() + at, &word, sizeof(word));
  header.resize(header.size() - sizeof(Digest));
  WireWriter out;
  out.raw(header);
  out.digest(digest_of(std::string_view(header)));
  return std::string(out.written());
}

TEST(ForgedShardHeader, IsRefusedForEachFieldThatCannotBe) {
  const std::string whole = encode_shard_header({.id = {.step = 2, .attempt = 1, .trial = 1},
                                                 .rank = 1,
                                                 .world = 4,
                                                 .job = digest_of(std::string_view("job")),
                                                 .run_id = "run-1",
                                                 .payload = 100});
  ASSERT_TRUE(parse_shard_header(forged(whole, 32, 1)).ok()) << "the forging itself is not refused";
  EXPECT_THAT(refusal(parse_shard_header(forged(whole, 8, 2))).message, HasSubstr("format 2"));
  EXPECT_EQ(refusal(parse_shard_header(forged(whole, 8, 2))).code, Code::mismatch);
  EXPECT_THAT(refusal(parse_shard_header(forged(whole, 8, 0))).message, HasSubstr("never written"));
  EXPECT_THAT(refusal(parse_shard_header(forged(whole, 12, 95))).message, HasSubstr("sizes"));
  EXPECT_THAT(refusal(parse_shard_header(forged(whole, 40, 3))).message, HasSubstr("fields cannot be"));
  EXPECT_THAT(refusal(parse_shard_header(forged(whole, 44, 65))).message, HasSubstr("sizes"));
  EXPECT_THAT(refusal(parse_shard_header(forged(whole, 68, 0x80000000U))).message, HasSubstr("fields cannot be"));
  EXPECT_THAT(refusal(parse_shard_header(forged(whole, 76, 0x01000031U))).message, HasSubstr("fields cannot be"))
      << "padding that is not zero";
  EXPECT_THAT(refusal(parse_shard_header(whole.substr(0, 80))).message, HasSubstr("sizes"));
}

struct Encoded {
  StateView state = test_state(test_job(), 1, 0, 2);
  EncodeScalars scalars{.step = 2, .attempt = 1, .trial = 1, .rank = 0, .world = 1};
  Value structure = encode_structure(state);
  EncodedShards shards;

  explicit Encoded(const Digest& job = {}) {
    scalars.job = job;
    DirectCompute compute;
    shards = *encode_shards(compute, scalars, structure, bytes("run-1"), state);
  }
};

TEST(Report, EveryTruncationIsRefusedByWhoeverReadsIt) {
  const Encoded encoded;
  DirectCompute compute;
  const std::string whole(encoded.shards.report.text());
  ASSERT_TRUE(check_shards(compute, encoded.shards.report, encoded.shards.shards).ok());
  EXPECT_EQ(refusal(report_head(Value())).code, Code::corrupted);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Value cut = bytes(whole.substr(0, size));
    EXPECT_EQ(report_head(cut).ok(), size >= sizeof(ReportHead)) << size;
    EXPECT_EQ(refusal(reported_pieces(cut)).code, Code::corrupted) << size;
    EXPECT_EQ(refusal(check_shards(compute, cut, encoded.shards.shards)).code, Code::corrupted) << size;
  }
  EXPECT_EQ(refusal(reported_pieces(bytes(whole + "x"))).code, Code::corrupted);
}

TEST(Report, ShardsOfAnotherProvenanceOrPlaceReadBackWrong) {
  const Encoded encoded;
  DirectCompute compute;
  const auto reason = [&](const std::function<void(ReportHead&)>& change, std::size_t piece_at = 0,
                          std::int64_t piece = 0) {
    std::string report(encoded.shards.report.text());
    ReportHead head = *report_head(encoded.shards.report);
    change(head);
    std::memcpy(report.data(), &head, sizeof(head));
    if (piece_at > 0) std::memcpy(report.data() + sizeof(head) + piece_at, &piece, sizeof(piece));
    return refusal(check_shards(compute, bytes(report), encoded.shards.shards)).message;
  };
  EXPECT_EQ(reason([](ReportHead&) {}), "accepted");
  EXPECT_THAT(reason([](ReportHead& head) { head.scalars.step = 3; }), HasSubstr("it is model of rank 0 of 2-1-1"));
  EXPECT_THAT(reason([](ReportHead& head) { head.scalars.attempt = 3; }), HasSubstr("it is model"));
  EXPECT_THAT(reason([](ReportHead& head) { head.scalars.rank = 3; }), HasSubstr("it is model of rank 0"));
  EXPECT_THAT(reason([](ReportHead& head) { head.scalars.job.low = 3; }), HasSubstr("it is model"));
  EXPECT_THAT(reason([](ReportHead& head) { head.sizes[1] += 1; }), HasSubstr("bytes, not"));
  EXPECT_THAT(reason([](ReportHead& head) { head.digests[2].low += 1; }), HasSubstr("its digest is not that"));
  const auto same = [](ReportHead&) {};
  const std::size_t first = 4 + 4 + encoded.state[0].tensors[0].name.size() + 2 + 2 * 8;  // begin, end, offset
  EXPECT_THAT(reason(same, first, 1), HasSubstr("have digest"));
  EXPECT_THAT(reason(same, first + 8, 1 << 20), HasSubstr("outside of the file"));
  EXPECT_THAT(reason(same, first + 16, 1 << 20), HasSubstr("outside of the file"));
}

TEST(Report, RanksThatDisagreeOnATensorOrAJobAreNotCommitted) {
  const Encoded encoded(digest_of_job(test_job()));
  TestDisk disk;
  const RunIdentity identity = TestAttempt(disk, 1, 1).identity();
  DirectCompute compute;
  const auto build = [&](const std::vector<Value>& reports) {
    return refusal(build_manifest(compute, {.step = 2, .attempt = 1, .trial = 1}, identity.encoded,
                                  bytes("shards/2-1-1"), Value::pack(reports)));
  };
  ASSERT_EQ(build({encoded.shards.report}).message, "accepted");
  EXPECT_THAT(build({Encoded(Digest{}).shards.report}).message, HasSubstr("rank 0 saves for job"));
  const std::string whole(encoded.shards.report.text());
  EXPECT_EQ(build({bytes(whole.substr(0, 10))}).code, Code::corrupted);
  EXPECT_EQ(build({bytes(whole.substr(0, whole.size() - 1))}).code, Code::corrupted);
  StateView other = encoded.state;
  other[0].tensors.change(0).shape = Shape{7, 5};
  std::vector<Value> reports;
  for (int rank = 0; rank < 2; ++rank) {
    EncodeScalars scalars = encoded.scalars;
    scalars.rank = rank;
    scalars.world = 2;
    StateView state = rank == 0 ? encoded.state : other;
    for (StateGroup& group : state) group.replicated = false;
    reports.push_back(encode_shards(compute, scalars, encode_structure(state), bytes("run-1"), state)->report);
  }
  EXPECT_EQ(build(reports).code, Code::mismatch);
  EXPECT_THAT(build(reports).message, HasSubstr("ranks disagree on model/layer.weight"));
  for (const auto& change : std::vector<std::function<void(EncodeScalars&)>>{
           [](EncodeScalars& s) { s.attempt = 9; }, [](EncodeScalars& s) { s.trial = 9; },
           [](EncodeScalars& s) { s.rank = 9; }, [](EncodeScalars& s) { s.world = 9; }}) {
    std::string report = whole;
    ReportHead head = *report_head(encoded.shards.report);
    change(head.scalars);
    std::memcpy(report.data(), &head, sizeof(head));
    EXPECT_THAT(build({bytes(report)}).message, HasSubstr("rank 0 reports shards of rank"));
  }
}

TEST(Structure, EveryTruncationIsRefusedByAllWhoReadIt) {
  const Encoded encoded;
  TestDisk disk;
  expect_ok(TestAttempt(disk, 1, 1).train({2}));
  DirectCompute compute;
  const ManifestView manifest = *parse_manifest(compute, bytes(disk.at("manifests/2-1-1")));
  const RestorePlan plan = *plan_restore(compute, manifest, encoded.structure);
  const std::string whole(encoded.structure.text());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Value cut = bytes(whole.substr(0, size));
    EXPECT_EQ(refusal(decode_structure(cut)).code, Code::corrupted) << size;
    if (size % 16 != 0) continue;
    EXPECT_EQ(refusal(plan_restore(compute, manifest, cut)).code, Code::corrupted) << size;
    EXPECT_EQ(refusal(assemble(compute, manifest, plan, cut, Value::pack({}))).code, Code::corrupted) << size;
    EXPECT_EQ(refusal(encode_shards(compute, encoded.scalars, cut, bytes("r"), encoded.state)).code, Code::corrupted);
  }
  EXPECT_EQ(refusal(decode_structure(bytes(whole + "x"))).code, Code::corrupted);
}

TEST(Structure, IsTheSameOnlyIfAllOfItIs) {
  const StateView state = test_state(test_job(), 1, 0, 2);
  EXPECT_TRUE(same_structure(state, blank(state)));
  const std::vector<std::function<void(StateGroup&)>> changes = {
      [](StateGroup& g) { g.name += "x"; },
      [](StateGroup& g) { g.shard = ShardKind::extra; },
      [](StateGroup& g) { g.dtype = DType::i32; },
      [](StateGroup& g) { g.count += 1; },
      [](StateGroup& g) { g.replicated = !g.replicated; },
      [](StateGroup& g) { g.holder += 1; },
      [](StateGroup& g) { g.holders += 1; },
      [](StateGroup& g) { g.tensors.pop_back(); },
      [](StateGroup& g) { g.tensors.change(0).name += "x"; },
      [](StateGroup& g) {
        g.tensors.change(0).shape = Shape{7, 5};
      },
      [](StateGroup& g) { g.tensors.change(0).offset += 1; },
      [](StateGroup& g) { g.tensors.change(0).begin += 1; },
      [](StateGroup& g) { g.tensors.change(0).length = 3; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    StateView changed = state;
    changes[i](changed[0]);
    EXPECT_FALSE(same_structure(state, changed)) << i;
  }
}

}  // namespace
}  // namespace firedrill
