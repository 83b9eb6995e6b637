// What the two catalogs say to records that nobody of this program wrote, and to half-done work of earlier attempts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ckpt/catalog.h"
#include "engine/ckpt/test_run.h"
#include "engine/rocks/record_store.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FilesCatalog, ASweepTakesTemporariesOfEarlierAttemptsAndLeavesWhatIsNobodys) {
  const auto disk = two_checkpoints();
  for (const char* name : {"2-1-1", "1.seen", "9-2-1", "2.seen", "notes", "x.seen"}) {
    disk->now["tmp/" + std::string(name)] = std::make_shared<TestDisk::Inode>();
  }
  TestFiles files(*disk, 0);
  const auto catalog = make_files_catalog();
  const auto nothing = [](std::string_view, const CheckpointId&) { return false; };
  disk->hook = [](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::remove) return injected_io_error();
    return std::nullopt;
  };
  EXPECT_EQ(refusal(catalog->sweep(files, 2, nothing)).code, Code::io_error);
  disk->hook = nullptr;
  ASSERT_TRUE(catalog->sweep(files, 2, nothing).ok());
  EXPECT_THAT(*files.list("tmp"), ElementsAre("2.seen", "9-2-1", "notes", "x.seen"));
}

Status write_records(TestDisk& disk, const std::vector<RecordChange>& changes) {
  TestFiles files(disk, 0);
  FD_TRY(const auto store, RecordStore::open(files, catalog_directory));
  return store->write(changes);
}

TEST(RocksdbCatalog, OfAnotherSchemaOrOfNoneIsRefusedByReadersAndByTheClaim) {
  for (const bool newer : {true, false}) {
    const auto disk = two_checkpoints(CatalogKind::rocksdb);
    RecordChange change{.name = "schema"};
    if (newer) change.value = Value::copy_of(std::string_view("firedrill.catalog/9"));
    ASSERT_TRUE(write_records(*disk, {change}).ok());
    const char* says = newer ? "says it is firedrill.catalog/9" : "says it is nothing";
    const Code code = newer ? Code::mismatch : Code::corrupted;
    TestAttempt attempt(*disk, 2);
    EXPECT_EQ(discover_on(*disk, attempt).trouble->code, code);
    const Error error = cause(attempt.train({}));
    EXPECT_EQ(error.code, code);
    EXPECT_THAT(error.message, HasSubstr(says));
  }
}

TEST(RocksdbCatalog, KnowsNoManifestOfWhatWasNeverCommitted) {
  const auto disk = two_checkpoints(CatalogKind::rocksdb);
  TestFiles files(*disk, 0);
  DirectCompute compute;
  const auto catalog = make_rocksdb_catalog();
  EXPECT_EQ(refusal(catalog->mark_validated(files, id(9))).code, Code::not_found);
  EXPECT_THAT(refusal(catalog->manifest(files, compute, id(9), false)).message, HasSubstr("holds no manifests/9-1-1"));
  TestDisk empty(CatalogKind::rocksdb);
  TestFiles none(empty, 0);
  EXPECT_EQ(refusal(make_rocksdb_catalog()->manifest(none, compute, id(9), false)).code, Code::not_found);
}

TEST(RocksdbCatalog, WritesACopyAnewThatWasLeftUnfinished) {
  const auto disk = two_checkpoints(CatalogKind::rocksdb);
  const std::string path = "shards/4-1-1/manifest";
  const std::string honest = disk->at(path);
  disk->at(path) = "half";
  TestFiles files(*disk, 0);
  disk->hook = [&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.op == FileOp::remove && operation.path == path) return injected_io_error();
    return std::nullopt;
  };
  EXPECT_EQ(refusal(make_rocksdb_catalog()->mark_validated(files, id(4))).code, Code::io_error);
  disk->hook = nullptr;
  ASSERT_TRUE(make_rocksdb_catalog()->mark_validated(files, id(4)).ok());
  EXPECT_EQ(disk->at(path), honest);
}

TEST(RocksdbCatalog, WithoutARecordBesideShardsIsLost) {
  const auto disk = two_checkpoints(CatalogKind::rocksdb);
  std::erase_if(disk->now, [](const auto& entry) { return entry.first.starts_with("catalog/"); });
  ASSERT_TRUE(write_records(*disk, {}).ok());
  TestAttempt attempt(*disk, 2);
  EXPECT_THAT(discover_on(*disk, attempt).trouble->message, HasSubstr("the catalog no record"));
  EXPECT_THAT(cause(attempt.train({})).message, HasSubstr("the catalog no record"));
}

}  // namespace
}  // namespace firedrill
