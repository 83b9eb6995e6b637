#include "engine/rocks/replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/rocks/record_store.h"
#include "engine/sim/disk.h"

namespace firedrill {
namespace {

// What was loaded of a store in which some writers have put and removed records, one of them a long one.
Value loaded_store(int writers, const StoreLimits& limits = {}) {
  sim::Disk disk;
  const auto files = disk.files({});
  EXPECT_TRUE(files->make_directory("catalog"));
  for (int writer = 0; writer < writers; ++writer) {
    auto store = RecordStore::open(*files, "catalog", limits);
    EXPECT_TRUE(store) << describe(store.error());
    for (int i = 0; i < 4; ++i) {
      const std::string text(i == 2 ? 70'000 : 10, 'v');
      EXPECT_TRUE((*store)->write({{.name = fmt::format("{}/{}", writer, i), .value = Value::copy_of(text)},
                                   {.name = fmt::format("{}/last", writer), .value = Value::copy_of("x")}}));
    }
    EXPECT_TRUE((*store)->write({{.name = fmt::format("{}/1", writer)}, {.name = "0/last"}, {.name = "absent"}}));
  }
  auto loaded = load_store(*files, "catalog");
  EXPECT_TRUE(loaded);
  return *loaded;
}

// The pack with other bytes in one file.
Value with_file(const Value& loaded, std::size_t file, std::string_view bytes) {
  std::vector<Value> parts(loaded.parts().begin(), loaded.parts().end());
  parts[file] = Value::copy_of(bytes);
  return Value::pack(parts);
}

void expect_same(const Value& loaded, const std::string& what) {
  const auto replayed = decode_store(loaded);
  const auto opened = decode_by_opening(loaded);
  ASSERT_EQ(replayed.ok(), opened.ok()) << what << ": " << describe(opened ? replayed.error() : opened.error());
  if (opened) {
    EXPECT_TRUE(replayed->same_as(*opened)) << what;
  } else {
    EXPECT_EQ(describe(replayed.error()), describe(opened.error())) << what;
  }
}

TEST(Replay, GivesWhatRocksDbFinds) {
  for (int writers = 1; writers <= 4; ++writers) expect_same(loaded_store(writers), fmt::format("{} writers", writers));
}

TEST(Replay, GivesWhatRocksDbFindsInFilesThatAreCutOrChanged) {
  const Value loaded = loaded_store(2);
  for (std::size_t file = 2; file < loaded.parts().size(); ++file) {
    const std::string whole(loaded[file].text());
    const std::size_t stride = 1 + whole.size() / 100;
    for (std::size_t at = 0; at < whole.size(); at += stride) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
      expect_same(with_file(loaded, file, changed), fmt::format("file {}, bit of byte {}", file, at));
      expect_same(with_file(loaded, file, whole.substr(0, at)), fmt::format("file {}, cut to {}", file, at));
    }
  }
}

TEST(Replay, LeavesAStoreWithATableToRocksDb) {
  const Value loaded = loaded_store(4, {.log_bytes = 1000});
  EXPECT_NE(loaded[1].text().find(".sst"), std::string_view::npos);
  expect_same(loaded, "tables");
}

// The form of the description: tags and numbers as RocksDB writes them.
std::optional<Value> replay_of(std::string_view edit, std::string_view batch, std::uint64_t oldest_log = 4) {
  return replay({.edits = {edit}, .batches = {batch}, .oldest_log = oldest_log});
}

TEST(Replay, GivesNoAnswerWhereTheDescriptionOrABatchHoldsWhatItDoesNotKnow) {
  using namespace std::string_view_literals;
  constexpr std::string_view edit = "\x01\x1aleveldb.BytewiseComparator\x02\x04\x03\x06\x04\x00"sv;
  constexpr std::string_view batch =
      "\x01\0\0\0\0\0\0\0\x02\0\0\0\x01\x01"
      "a\x01"
      "1\x00\x01"
      "b"sv;
  const auto known = replay_of(edit, batch);
  ASSERT_TRUE(known);
  EXPECT_EQ(RecordView(*known).find("a")->text(), "1");
  EXPECT_FALSE(replay_of(edit, batch, 3)) << "log 3 is obsolete by the description";
  EXPECT_FALSE(replay_of("\x01\x05other"sv, batch)) << "another order of names";
  EXPECT_FALSE(replay_of("\x67\x00\x07"sv, batch)) << "a table";
  EXPECT_FALSE(replay_of("\x02"sv, batch)) << "a number that is not there";
  EXPECT_FALSE(replay_of(edit,
                         "\x01\0\0\0\0\0\0\0\x01\0\0\0\x02\x01"
                         "a\x01"
                         "1"sv))
      << "a merge";
  EXPECT_FALSE(replay_of(edit,
                         "\x01\0\0\0\0\0\0\0\x02\0\0\0\x00\x01"
                         "b"sv))
      << "fewer operations than counted";
  EXPECT_FALSE(replay_of(edit,
                         "\x01\0\0\0\0\0\0\0\x01\0\0\0\x00\x09"
                         "b"sv))
      << "a name that is too long";
}

}  // namespace
}  // namespace firedrill
