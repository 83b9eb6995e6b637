#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/rocks/record_store.h"
#include "engine/sim/disk.h"

namespace firedrill {
namespace {

using sim::Disk;

// A node that does not see names yet: each for some opens, and as many listings are empty.
class Late final : public ForwardingFileSystem {
 public:
  Late(FileSystem& inner, int opens, int listings) : ForwardingFileSystem(inner), opens_(opens), listings_(listings) {}

  Result<std::unique_ptr<File>> open(std::string_view path) override {
    if (opened_[std::string(path)]++ < opens_) {
      return Error{.code = Code::not_found, .message = fmt::format("no '{}'", path), .injected = true};
    }
    return inner_.open(path);
  }
  Result<std::vector<std::string>> list(std::string_view directory) override {
    if (listed_++ < listings_) return std::vector<std::string>();
    return inner_.list(directory);
  }
  void hide_all() {
    opens_ = 1 << 30;
    listings_ = 1 << 30;
  }

 private:
  int opens_;
  int listings_;
  int listed_ = 0;
  std::map<std::string, int> opened_;
};

RecordChange record(std::string_view name) { return {.name = std::string(name), .value = Value::copy_of("1")}; }

class LateNames : public ::testing::Test {
 protected:
  LateNames() {
    EXPECT_TRUE(files_->make_directory("catalog"));
    EXPECT_TRUE(files_->sync_directory(""));
    EXPECT_TRUE((*RecordStore::open(*files_, "catalog"))->write({record("a")}));
  }
  std::size_t records_there() {
    auto store = RecordStore::open(*files_, "catalog");
    return store ? RecordView(*(*store)->records()).size() : 0;
  }

  Disk disk_;
  std::unique_ptr<FileSystem> files_ = disk_.files({});
};

TEST_F(LateNames, AStoreWhoseNamesComeLateIsNotMadeAnew) {
  for (int opens = 0; opens <= 3; ++opens) {
    for (int listings = 0; listings <= 1; ++listings) {
      Late late(*files_, opens, listings);
      const auto store = RecordStore::open(late, "catalog");
      EXPECT_TRUE(store || store.error().retryable) << describe(store.error());
      EXPECT_EQ(records_there(), 1U) << opens << " opens and " << listings << " listings too early";
    }
  }
}

TEST_F(LateNames, AWriterThatSeesItsStoreNoMoreDoesNotMakeAnother) {
  Late late(*files_, 0, 0);
  auto store = RecordStore::open(late, "catalog", {.log_bytes = 1});
  ASSERT_TRUE(store) << describe(store.error());
  ASSERT_TRUE((*store)->write({record("b")}));
  late.hide_all();
  const Status written = (*store)->write({record("c")});  // its log has outgrown: it opens the store again
  ASSERT_TRUE(written.failed_with(Code::unavailable));
  EXPECT_EQ(written.error().message, "the record store in catalog was there, and is not to be seen");
  EXPECT_EQ(records_there(), 2U);
}

// A power loss behind the sync of the directory and before that of the rename leaves all names but CURRENT.
TEST(UnfinishedStore, LeavesEmptyLogsThatAreNoReasonToRefuse) {
  for (const bool holds_something : {false, true}) {
    Disk disk;
    const auto files = disk.files({});
    ASSERT_TRUE(files->make_directory("catalog"));
    for (const char* path : {"catalog/000004.log", "catalog/MANIFEST-000001", "catalog/MANIFEST-000005"}) {
      const auto file = files->create(path);
      ASSERT_TRUE(file);
      ASSERT_TRUE((*file)->write(0, Value::copy_of(holds_something ? "a batch" : "")));
    }
    const auto store = RecordStore::open(*files, "catalog");
    EXPECT_EQ(store.failed_with(Code::corrupted), holds_something);
    EXPECT_TRUE(!store || (*store)->write({record("a")}));
    EXPECT_EQ(store.ok(), !holds_something);
  }
}

}  // namespace
}  // namespace firedrill
