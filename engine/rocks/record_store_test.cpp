#include "engine/rocks/record_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "engine/rocks/log_scan.h"
#include "engine/sim/disk.h"

namespace firedrill {
namespace {

using sim::Disk;
using sim::View;
using testing::HasSubstr;

using Contents = std::map<std::string, std::string>;

Value text(std::string_view bytes) { return Value::copy_of(bytes); }

Contents contents_of(const Value& records) {
  const RecordView view(records);
  Contents contents;
  for (std::size_t i = 0; i < view.size(); ++i) contents.emplace(view.name(i), view.value(i).text());
  return contents;
}

Result<Contents> read(FileSystem& files) {
  FD_TRY(const Value loaded, load_store(files, "catalog"));
  auto records = decode_store(loaded);
  if (records.failed_with(Code::not_found)) return Contents();  // not made yet
  if (!records) return records.error();
  return contents_of(*records);
}

// Passes calls on until the n-th, at which `on_call` may make it fail. Every later one fails too if that is death.
class Failing final : public ForwardingFileSystem {
 public:
  Failing(FileSystem& inner, int at, Code code) : ForwardingFileSystem(inner), at_(at), code_(code) {}

  bool fired() const { return fired_; }
  Status pass() {
    ++calls_;
    if (calls_ != at_ && !(fired_ && code_ == Code::dead)) return {};
    fired_ = true;
    return Error{.code = code_, .message = "planned", .injected = true};
  }

  Result<std::unique_ptr<File>> create(std::string_view path) override { return wrapped(inner_.create(path)); }
  Result<std::unique_ptr<File>> open(std::string_view path) override { return wrapped(inner_.open(path)); }
  Result<FileInfo> stat(std::string_view path) override {
    FD_TRY_VOID(pass());
    return inner_.stat(path);
  }
  Result<std::vector<std::string>> list(std::string_view directory) override {
    FD_TRY_VOID(pass());
    return inner_.list(directory);
  }
  Status rename(std::string_view from, std::string_view to) override {
    FD_TRY_VOID(pass());
    return inner_.rename(from, to);
  }
  Status remove(std::string_view path) override {
    FD_TRY_VOID(pass());
    return inner_.remove(path);
  }
  Status sync_directory(std::string_view directory) override {
    FD_TRY_VOID(pass());
    return inner_.sync_directory(directory);
  }
  Status drop_cache(std::string_view path) override {
    FD_TRY_VOID(pass());
    return inner_.drop_cache(path);
  }

 private:
  class Handle final : public ForwardingFile {
   public:
    Handle(std::unique_ptr<File> inner, Failing& files) : ForwardingFile(std::move(inner)), files_(files) {}
    Status write(std::int64_t offset, const Value& bytes) override {
      FD_TRY_VOID(files_.pass());
      return inner_->write(offset, bytes);
    }
    Result<Value> read(std::int64_t offset, std::int64_t size) override {
      FD_TRY_VOID(files_.pass());
      return inner_->read(offset, size);
    }
    Status sync() override {
      FD_TRY_VOID(files_.pass());
      return inner_->sync();
    }
    Status close() override {
      FD_TRY_VOID(files_.pass());
      return inner_->close();
    }

   private:
    Failing& files_;
  };
  Result<std::unique_ptr<File>> wrapped(Result<std::unique_ptr<File>> file) {
    FD_TRY_VOID(pass());
    if (!file) return file;
    return std::unique_ptr<File>(std::make_unique<Handle>(*std::move(file), *this));
  }

  int at_;
  Code code_;
  int calls_ = 0;
  bool fired_ = false;
};

// A disk with a store in which two writers have left records: the logs of both are there.
struct Filled {
  Disk disk;
  std::unique_ptr<FileSystem> files = disk.files({});
  Contents contents;

  Filled() {
    EXPECT_TRUE(files->make_directory("catalog"));
    EXPECT_TRUE(files->sync_directory(""));
    for (int writer = 1; writer <= 2; ++writer) {
      auto store = RecordStore::open(*files, "catalog");
      EXPECT_TRUE(store) << describe(store.error());
      for (int i = 0; i < 3; ++i) {
        const std::string name = fmt::format("record/{}-{}", writer, i);
        const std::string value = fmt::format("{} {}", name, std::string(static_cast<std::size_t>(300 * i), 'v'));
        EXPECT_TRUE((*store)->write({{.name = name, .value = text(value)}}));
        contents[name] = value;
      }
    }
  }
};

// The files of a disk, to be changed.
Contents files_of(FileSystem& files) {
  Contents all;
  const auto names = files.list("catalog");
  for (const std::string& name : *names) {
    auto file = files.open("catalog/" + name);
    all[name] = (*file)->read(0, *(*file)->size())->text();
  }
  return all;
}

std::unique_ptr<Disk> disk_with(const Contents& contents) {
  auto disk = std::make_unique<Disk>();
  const auto files = disk->files({});
  EXPECT_TRUE(files->make_directory("catalog"));
  for (const auto& [name, bytes] : contents) {
    auto file = files->create("catalog/" + name);
    EXPECT_TRUE(file);
    EXPECT_TRUE((*file)->write(0, text(bytes)));
  }
  return disk;
}

TEST(RecordStore, WhatWasWrittenIsReadByTheWriterAndByReaders) {
  Disk disk;
  const auto files = disk.files({});
  ASSERT_TRUE(files->make_directory("catalog"));
  EXPECT_EQ(decode_store(*load_store(*files, "catalog")).error().code, Code::not_found) << "not made yet";
  auto store = RecordStore::open(*files, "catalog");
  ASSERT_TRUE(store) << describe(store.error());
  ASSERT_TRUE((*store)->write({{.name = "b", .value = text("2")}, {.name = "a/1", .value = text("1")}}));
  ASSERT_TRUE((*store)->write({{.name = "b"}, {.name = "c", .value = text("3")}}));
  for (const auto& records : {(*store)->records(), decode_store(*load_store(*files, "catalog"))}) {
    ASSERT_TRUE(records) << describe(records.error());
    EXPECT_EQ(contents_of(*records), (Contents{{"a/1", "1"}, {"c", "3"}}));
  }
  const auto snapshot = disk.snapshot(View::power_fails);
  EXPECT_FALSE(read(*snapshot)) << "nobody has synced the name of the directory";
}

TEST(RecordStore, ReadingChangesNothingAndWorksWhereNothingCanChange) {
  const Filled filled;
  const auto operations = filled.disk.digest(View::processes_die);
  const auto snapshot = filled.disk.snapshot(View::processes_die);
  const auto there = read(*snapshot);
  ASSERT_TRUE(there) << describe(there.error());
  EXPECT_EQ(*there, filled.contents);
  EXPECT_EQ(filled.disk.digest(View::processes_die), operations);
}

TEST(RecordStore, TwoRunsWriteTheSameBytesInTheSameOrder) {
  std::vector<std::string> logs;
  for (int run = 0; run < 2; ++run) {
    Disk disk;
    disk.reset({.log = true});
    const auto files = disk.files({});
    ASSERT_TRUE(files->make_directory("catalog"));
    for (int writer = 0; writer < 3; ++writer) {
      auto store = RecordStore::open(*files, "catalog");
      ASSERT_TRUE(store);
      ASSERT_TRUE((*store)->write({{.name = fmt::format("r{}", writer), .value = text(std::string(70'000, 'x'))}}));
    }
    std::string log;
    for (const auto& record : disk.log()) {
      log += fmt::format("{} {} {} {} {}\n", to_string(record.op), record.path, record.second, record.offset,
                         record.bytes ? record.bytes.digest().hex() : "");
    }
    logs.push_back(std::move(log));
  }
  EXPECT_EQ(logs[0], logs[1]);
}

TEST(RecordStore, AnErrorAtAnyCallReachesTheCallerAsItWasAndTheStoreGoesOn) {
  bool fired = true;
  int at = 0;
  for (; fired; ++at) {
    Filled filled;
    Failing failing(*filled.files, at + 1, Code::no_space);
    std::vector<Status> outcomes;
    auto store = RecordStore::open(failing, "catalog");
    outcomes.push_back(store ? Status() : Status(store.error()));
    if (!store) store = RecordStore::open(failing, "catalog");
    ASSERT_TRUE(store) << at;
    outcomes.push_back((*store)->write({{.name = "x", .value = text("1")}}));
    if (!outcomes.back()) outcomes.push_back((*store)->write({{.name = "x", .value = text("1")}}));
    fired = failing.fired();
    int failures = 0;
    for (const Status& outcome : outcomes) {
      if (outcome) continue;
      ++failures;
      EXPECT_EQ(outcome.error().code, Code::no_space) << at;
      EXPECT_TRUE(outcome.error().injected) << at;
    }
    EXPECT_EQ(failures, fired ? 1 : 0) << "call " << at << ": swallowed, or not mended by a new try";
    filled.contents["x"] = "1";
    const auto there = read(*filled.disk.snapshot(View::power_fails));
    ASSERT_TRUE(there) << at << ": " << describe(there.error());
    EXPECT_EQ(*there, filled.contents) << at;
  }
  EXPECT_GT(at, 30);
}

TEST(RecordStore, ADeathAtAnyCallLeavesEachBatchWholeOrAbsentWithCachesAndWithout) {
  bool fired = true;
  int at = 0;
  for (; fired; ++at) {
    Filled filled;
    Failing failing(*filled.files, at + 1, Code::dead);
    int acknowledged = 0;
    if (auto store = RecordStore::open(failing, "catalog")) {
      for (int i = 0; i < 2; ++i) {
        if ((*store)->write({{.name = fmt::format("x{}", i), .value = text("1")},
                             {.name = fmt::format("y{}", i), .value = text("2")}})) {
          ++acknowledged;
        } else {
          break;
        }
      }
    }
    fired = failing.fired();
    for (const View view : {View::processes_die, View::power_fails}) {
      const auto there = read(*filled.disk.snapshot(view));
      ASSERT_TRUE(there) << "death at call " << at << ": " << describe(there.error());
      int batches = 0;
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(there->contains(fmt::format("x{}", i)), there->contains(fmt::format("y{}", i)));
        batches += static_cast<int>(there->contains(fmt::format("x{}", i)));
      }
      EXPECT_GE(batches, acknowledged) << at;
      EXPECT_EQ(there->size(), filled.contents.size() + 2 * static_cast<std::size_t>(batches)) << at;
    }
    // And the next writer finds the same, and makes it last.
    auto next = RecordStore::open(*filled.files, "catalog");
    ASSERT_TRUE(next) << at << ": " << describe(next.error());
    const Contents seen = contents_of(*(*next)->records());
    const auto lasting = read(*filled.disk.snapshot(View::power_fails));
    ASSERT_TRUE(lasting) << at;
    EXPECT_EQ(*lasting, seen) << at;
  }
  EXPECT_GT(at, 30);
}

TEST(RecordStore, EveryFlippedBitOfEveryFileIsRefusedOrReadAsItWas) {
  const Filled filled;
  const Contents whole = files_of(*filled.files);
  int refused = 0;
  for (const auto& [name, bytes] : whole) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      Contents damaged = whole;
      damaged[name][at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
      const auto disk = disk_with(damaged);
      const auto there = read(*disk->files({}));
      if (there) {
        EXPECT_EQ(*there, filled.contents) << name << " at " << at;
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST(RecordStore, AMissingFileIsDamageAndAnythingCutOffTheEndIsDamageOrTheLastRecord) {
  const Filled filled;
  const Contents whole = files_of(*filled.files);
  Contents without_last = filled.contents;
  without_last.erase("record/2-2");
  for (const auto& [name, bytes] : whole) {
    Contents missing = whole;
    missing.erase(name);
    const auto gone = read(*disk_with(missing)->files({}));
    EXPECT_TRUE(!gone || *gone == filled.contents) << name;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      if (bytes.size() - size > 40) size += 13;
      Contents cut = whole;
      cut[name].resize(size);
      const auto there = read(*disk_with(cut)->files({}));
      if (!there || *there == filled.contents) continue;
      EXPECT_EQ(there->size() < filled.contents.size() && name == "000008.log", true) << name << " cut to " << size;
      for (const auto& [record, value] : *there) EXPECT_EQ(value, filled.contents.at(record));
    }
  }
}

// Sectors of 512 bytes: any of those that a batch lies in may be lost when the power fails before its sync.
TEST(RecordStore, ALostSectorOfTheLastBatchIsNoDamageAndOneOfAnEarlierBatchIs) {
  Filled filled;
  const Contents before = files_of(*filled.files);
  {
    auto store = RecordStore::open(*filled.files, "catalog");
    ASSERT_TRUE((*store)->write({{.name = "a", .value = text(std::string(1500, 'a'))}}));
    ASSERT_TRUE((*store)->write({{.name = "b", .value = text(std::string(2600, 'b'))}}));
  }
  const Contents whole = files_of(*filled.files);
  const std::string& log = whole.at("000012.log");
  const std::size_t last = 1500 + 7 + 12 + 1 + 2 + 2;
  for (std::size_t sector = 0; sector * 512 < log.size(); ++sector) {
    Contents torn = whole;
    const std::size_t begin = std::max(sector * 512, sector * 512 < last && sector * 512 + 512 > last ? last : 0);
    const std::size_t end = std::min(sector * 512 + 512, log.size());
    for (std::size_t at = begin; at < end; ++at) torn["000012.log"][at] = '\0';
    const auto there = read(*disk_with(torn)->files({}));
    if (begin >= last) {
      ASSERT_TRUE(there) << sector << ": " << describe(there.error());
      EXPECT_TRUE(there->contains("a"));
      EXPECT_FALSE(there->contains("b"));
    } else {
      EXPECT_FALSE(there) << sector;
    }
  }
}

TEST(RecordStore, LogsThatHaveOutgrownTheirLimitsAreFoldedAndTheTablesMerged) {
  Filled filled;
  const StoreLimits limits{.log_bytes = 2000, .logs = 3, .tables = 2};
  for (int writer = 0; writer < 12; ++writer) {
    auto store = RecordStore::open(*filled.files, "catalog", limits);
    ASSERT_TRUE(store) << writer << ": " << describe(store.error());
    for (int i = 0; i < 3; ++i) {
      const std::string value(900, static_cast<char>('a' + writer));
      ASSERT_TRUE((*store)->write({{.name = fmt::format("w{}", i), .value = text(value)}}));
      filled.contents[fmt::format("w{}", i)] = value;
    }
    const auto there = read(*filled.disk.snapshot(View::power_fails));
    ASSERT_TRUE(there) << writer << ": " << describe(there.error());
    EXPECT_EQ(*there, filled.contents) << writer;
  }
  const Contents files = files_of(*filled.files);
  int logs = 0;
  int tables = 0;
  for (const auto& [name, bytes] : files) {
    logs += static_cast<int>(name.ends_with(".log"));
    tables += static_cast<int>(name.ends_with(".sst"));
  }
  EXPECT_LE(logs, 4);
  EXPECT_GE(tables, 1);
  EXPECT_LE(tables, 3);
  int refused = 0;
  for (const auto& [name, bytes] : files) {
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
      Contents damaged = files;
      damaged[name][at] = static_cast<char>(bytes[at] ^ 0x20);
      const auto there = read(*disk_with(damaged)->files({}));
      if (there) {
        EXPECT_EQ(*there, filled.contents) << name << " at " << at;
      }
      refused += static_cast<int>(!there);
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace firedrill
