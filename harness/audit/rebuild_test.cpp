// The audit on a root with the RocksDB catalog (the frozen example, its records put into one), and what can be rebuilt.
#include "harness/audit/rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/rocks/record_store.h"
#include "engine/sim/disk.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr CheckpointId frozen_id{.step = 2, .attempt = 1, .trial = 1};

void write_file(FileSystem& files, const std::string& path, std::string_view text) {
  auto file = files.create(path);
  ASSERT_TRUE(file) << path;
  ASSERT_TRUE(text.empty() || (*file)->write(0, Value::copy_of(text)).ok());
}

class CatalogRoot : public testing::Test {
 protected:
  CatalogRoot() {
    EXPECT_TRUE(files_->make_directory("shards"));
    EXPECT_TRUE(files_->make_directory("shards/2-1-1"));
    EXPECT_TRUE(files_->make_directory("catalog"));
    std::vector<RecordChange> records = {{.name = "schema", .value = Value::copy_of("firedrill.catalog/1")}};
    const fs::path frozen = "golden/format-1";
    for (const auto& entry : fs::recursive_directory_iterator(frozen)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = fs::relative(entry.path(), frozen).generic_string();
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(in), {});
      if (path.starts_with("shards/")) {
        write_file(*files_, path, text);
      } else {
        records.push_back({.name = path, .value = Value::copy_of(text.empty() ? "1" : text)});
      }
      if (path == "manifests/2-1-1") write_file(*files_, "shards/2-1-1/manifest", text);
    }
    write_file(*files_, "shards/2-1-1/validated", "");
    auto store = RecordStore::open(*files_, "catalog");
    EXPECT_TRUE(store && (*store)->write(records));
  }

  // Flips a bit in the first record of the log.
  void damage_catalog() {
    const auto names = files_->list("catalog");
    for (const std::string& name : *names) {
      if (!name.ends_with(".log")) continue;
      const std::string path = "catalog/" + name;
      std::string text;
      {
        auto file = files_->open(path);
        text = (*file)->read(0, *(*file)->size())->text();
      }
      ASSERT_FALSE(text.empty());
      text[20] ^= 1;
      ASSERT_TRUE(files_->remove(path));
      write_file(*files_, path, text);
    }
  }

  sim::Disk disk_;
  std::unique_ptr<FileSystem> files_ = disk_.files({});
};

TEST_F(CatalogRoot, IsAuditedLikeOneOfFiles) {
  const AuditReport report = audit_directory(*files_);
  EXPECT_FALSE(report.damaged()) << in_words(report);
  ASSERT_EQ(report.checkpoints.size(), 1U);
  const AuditedCheckpoint& checkpoint = report.checkpoints[0];
  EXPECT_EQ(checkpoint.id, frozen_id);
  EXPECT_TRUE(checkpoint.stands() && checkpoint.validated && checkpoint.intact());
  EXPECT_THAT(report.attempts, ElementsAre(1));
}

TEST_F(CatalogRoot, ADamagedOrLostCatalogIsDamage) {
  damage_catalog();
  const AuditReport damaged = audit_directory(*files_);
  EXPECT_TRUE(damaged.damaged());
  EXPECT_THAT(damaged.problems, ElementsAre(HasSubstr("the catalog cannot be read")));
  ASSERT_TRUE(files_->rename("catalog", "elsewhere"));
  EXPECT_TRUE(audit_directory(*files_).damaged());
}

TEST_F(CatalogRoot, ACatalogThatCanBeReadIsNotRebuilt) {
  const Digest before = disk_.digest(sim::View::processes_die);
  const auto rebuilt = rebuild_catalog(*files_);
  ASSERT_FALSE(rebuilt);
  EXPECT_EQ(rebuilt.error().code, Code::invalid_input);
  EXPECT_EQ(disk_.digest(sim::View::processes_die), before);
}

TEST_F(CatalogRoot, ADamagedOneIsRebuiltFromTheCopiesAloneAndKept) {
  damage_catalog();
  ASSERT_TRUE(files_->make_directory("shards/4-1-1"));
  const auto rebuilt = rebuild_catalog(*files_);
  ASSERT_TRUE(rebuilt) << describe(rebuilt.error());
  EXPECT_THAT(rebuilt->taken, ElementsAre(frozen_id));
  ASSERT_EQ(rebuilt->left_out.size(), 1U);
  EXPECT_EQ(rebuilt->left_out[0].id.step, 4);
  EXPECT_EQ(rebuilt->kept_as, "catalog.damaged-1");
  EXPECT_TRUE(files_->stat("catalog.damaged-1/CURRENT"));
  EXPECT_THAT(in_words(*rebuilt), HasSubstr("rebuilt   2-1-1"));
  const AuditReport report = audit_directory(*files_);
  EXPECT_FALSE(report.damaged()) << in_words(report);
  ASSERT_NE(report.newest(), nullptr);
  EXPECT_TRUE(report.newest()->validated && report.newest()->intact());
  EXPECT_THAT(report.attempts, ElementsAre(1));
  EXPECT_FALSE(rebuild_catalog(*files_)) << "it can be read now";
}

// A write-ahead log that is cut where a record ends reads as a younger catalog.
TEST_F(CatalogRoot, ALogCutToNothingIsDamageThatCanBeRebuilt) {
  const auto names = files_->list("catalog");
  for (const std::string& name : *names) {
    if (!name.ends_with(".log")) continue;
    ASSERT_TRUE(files_->remove("catalog/" + name));
    write_file(*files_, "catalog/" + name, "");
  }
  const AuditReport cut = audit_directory(*files_);
  EXPECT_TRUE(cut.damaged());
  ASSERT_EQ(cut.checkpoints.size(), 1U);
  EXPECT_TRUE(cut.checkpoints[0].lost_by_catalog);
  EXPECT_THAT(in_words(cut), HasSubstr("rebuild with firedrill audit DIR --rebuild-catalog"));
  const auto rebuilt = rebuild_catalog(*files_);
  ASSERT_TRUE(rebuilt) << describe(rebuilt.error());
  EXPECT_THAT(rebuilt->taken, ElementsAre(frozen_id));
  EXPECT_EQ(rebuilt->why, "it has lost 2-1-1");
  const AuditReport after = audit_directory(*files_);
  EXPECT_FALSE(after.damaged()) << in_words(after);
}

TEST_F(CatalogRoot, WhatTheCatalogRejectsOrDeletesIsNotLost) {
  for (const std::string mark : {"rejected", "tombstones"}) {
    {
      auto store = RecordStore::open(*files_, "catalog");
      ASSERT_TRUE(store && (*store)
                               ->write({{.name = "manifests/2-1-1", .value = {}},
                                        {.name = "validated/2-1-1", .value = {}},
                                        {.name = mark + "/2-1-1", .value = Value::copy_of("1")}})
                               .ok());
    }
    EXPECT_FALSE(audit_directory(*files_).damaged()) << mark;
    auto store = RecordStore::open(*files_, "catalog");
    ASSERT_TRUE(store && (*store)->write({{.name = mark + "/2-1-1", .value = {}}}).ok());
    EXPECT_TRUE(audit_directory(*files_).damaged()) << mark;
  }
}

TEST_F(CatalogRoot, WhatMayHaveBeenValidatedIsNotLeftOutInSilence) {
  damage_catalog();
  ASSERT_TRUE(files_->make_directory("shards/4-1-1"));
  const std::string garbage = "garbage";
  write_file(*files_, "shards/4-1-1/manifest", garbage);
  write_file(*files_, "shards/4-1-1/validated", "");
  ASSERT_TRUE(files_->make_directory("shards/6-1-1"));
  write_file(*files_, "shards/6-1-1/validated", "");
  const auto rebuilt = rebuild_catalog(*files_);
  ASSERT_TRUE(rebuilt) << describe(rebuilt.error());
  EXPECT_FALSE(rebuilt->complete());
  EXPECT_THAT(rebuilt->taken, ElementsAre(frozen_id));
  EXPECT_THAT(in_words(*rebuilt), HasSubstr("LOST      4-1-1: its manifest"));
  EXPECT_THAT(in_words(*rebuilt), HasSubstr("LOST      6-1-1: its copy of the manifest is missing"));
}

TEST_F(CatalogRoot, ARootOfBothKindsIsDamage) {
  ASSERT_TRUE(files_->make_directory("manifests"));
  EXPECT_FALSE(audit_directory(*files_).damaged()) << "an empty directory holds no record";
  write_file(*files_, "manifests/2-1-1", "text");
  const AuditReport report = audit_directory(*files_);
  EXPECT_TRUE(report.damaged());
  EXPECT_THAT(report.problems, ElementsAre(testing::AllOf(HasSubstr("manifests/"), HasSubstr("catalog/"))));
  const auto rebuilt = rebuild_catalog(*files_);
  ASSERT_FALSE(rebuilt);
  EXPECT_EQ(rebuilt.error().code, Code::mismatch);
}

TEST_F(CatalogRoot, OfAnUnreadableCatalogNobodySaysThatNothingWasCommitted) {
  damage_catalog();
  const AuditReport report = audit_directory(*files_);
  EXPECT_THAT(in_words(report), HasSubstr("2-1-1  unknown: the catalog cannot be read\n"));
  EXPECT_THAT(report.problems, ElementsAre(HasSubstr("firedrill audit DIR --rebuild-catalog")));
}

TEST_F(CatalogRoot, OfARetiredCheckpointOnlyTheTombstoneIsLeftAndThatIsNoProblem) {
  {
    auto store = RecordStore::open(*files_, "catalog");
    ASSERT_TRUE(store && (*store)->write({{.name = "tombstones/1-1-1", .value = Value::copy_of("1")}}).ok());
  }
  const AuditReport report = audit_directory(*files_);
  ASSERT_EQ(report.checkpoints.size(), 2U);
  EXPECT_TRUE(report.checkpoints[0].retired());
  EXPECT_THAT(report.checkpoints[0].contents->problems, ElementsAre());
  EXPECT_THAT(in_words(report), HasSubstr("1-1-1  retired\n"));
  ASSERT_TRUE(files_->make_directory("shards/1-1-1"));
  EXPECT_THAT(in_words(audit_directory(*files_)), HasSubstr("1-1-1  not committed, being deleted\n"));
}

TEST_F(CatalogRoot, ALostOneIsRebuilt) {
  ASSERT_TRUE(files_->rename("catalog", "elsewhere"));
  const auto rebuilt = rebuild_catalog(*files_);
  ASSERT_TRUE(rebuilt) << describe(rebuilt.error());
  EXPECT_EQ(rebuilt->kept_as, "");
  EXPECT_FALSE(audit_directory(*files_).damaged());
}

TEST_F(CatalogRoot, WhatIsNotWholeIsNotTakenOverAndThenNothingChanges) {
  damage_catalog();
  ASSERT_TRUE(files_->remove("shards/2-1-1/model-1"));
  const Digest before = disk_.digest(sim::View::processes_die);
  const auto rebuilt = rebuild_catalog(*files_);
  ASSERT_FALSE(rebuilt);
  EXPECT_THAT(rebuilt.error().message, HasSubstr("none of the 1 shard directories"));
  EXPECT_EQ(disk_.digest(sim::View::processes_die), before);
}

TEST(FilesRoot, HasNoCatalogToRebuild) {
  sim::Disk disk;
  const auto files = disk.files({});
  ASSERT_TRUE(files->make_directory("manifests"));
  EXPECT_THAT(rebuild_catalog(*files).error().message, HasSubstr("keeps its records in files"));
}

}  // namespace
}  // namespace firedrill
