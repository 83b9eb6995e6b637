#include "harness/world/store_views.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/rocks/record_store.h"
#include "engine/sim/disk.h"

namespace firedrill {
namespace {

using sim::Disk;
using sim::View;

// A root with a store, and what is known of it by what its disk shows.
class StoreViewsTest : public testing::Test {
 protected:
  StoreViewsTest() {
    EXPECT_TRUE(files_->make_directory("catalog") && files_->make_directory("shards"));
    auto opened = RecordStore::open(*files_, "catalog");
    EXPECT_TRUE(opened);
    if (opened) store_ = *std::move(opened);
  }

  void write(const std::vector<RecordChange>& changes) { ASSERT_TRUE(store_->write(changes)); }
  void put(const std::string& name, std::string_view text) { write({{.name = name, .value = Value::copy_of(text)}}); }
  StoreViews::Known known() {
    return views_.of(disk_.digest_below(View::processes_die, "catalog"), *disk_.look(View::processes_die));
  }

  Disk disk_;
  std::unique_ptr<FileSystem> files_ = disk_.files({});
  std::unique_ptr<RecordStore> store_;
  StoreViews views_;
};

TEST_F(StoreViewsTest, NamesWhatRecordsSayIsCommitted) {
  put("schema", "firedrill.catalog/1");
  EXPECT_TRUE(known().decides);
  EXPECT_TRUE(known().committed.empty());
  put("manifests/2-1-1", "of step 2");
  put("manifests/4-1-1", "of step 4");
  put("validated/2-1-1", "1");
  const StoreViews::Known two = known();
  ASSERT_EQ(two.committed.size(), 2U);
  EXPECT_EQ(two.committed[0].record, "manifests/2-1-1");
  EXPECT_EQ(two.committed[0].manifest, digest_of(std::string_view("of step 2")));
  ASSERT_NE(two.find({.step = 4, .attempt = 1, .trial = 1}), nullptr);
  EXPECT_EQ(two.find({.step = 4, .attempt = 1, .trial = 1})->record, "manifests/4-1-1");
  EXPECT_EQ(two.find({.step = 4, .attempt = 2, .trial = 1}), nullptr);
  write({{.name = "manifests/2-1-1"}});
  EXPECT_EQ(known().committed.size(), 1U);
}

TEST_F(StoreViewsTest, TellsTheTextsOfManifestsFromAllOtherRecords) {
  put("manifests/2-1-1", "a");
  const StoreViews::Known first = known();
  put("manifests/2-1-1", "b");
  EXPECT_NE(known().records, first.records);
  EXPECT_EQ(known().others, first.others);
  put("manifests/2-1-1", "a");
  EXPECT_EQ(known().records, first.records) << "what the logs hold besides does not count";
  put("validated/2-1-1", "1");
  EXPECT_NE(known().records, first.records);
  const Digest marked = known().others;
  EXPECT_NE(marked, first.others);
  put("validated/2-1-1", "2");
  EXPECT_NE(known().others, marked);
}

TEST_F(StoreViewsTest, DecidesNothingWithoutRecordsOrWithoutAStoreThatCanBeRead) {
  EXPECT_FALSE(known().decides) << "no record yet";
  put("manifests/2-1-1", "a");
  EXPECT_TRUE(known().decides);
  const Digest of_nothing = disk_.digest_below(View::processes_die, "elsewhere");
  EXPECT_FALSE(views_.of(of_nothing, *Disk().look(View::processes_die)).decides) << "no store";
  put("manifests/not an id", "a");
  EXPECT_FALSE(known().decides) << "a name that is none";
  write({{.name = "manifests/not an id"}});
  EXPECT_TRUE(known().decides);
  ASSERT_TRUE(files_->remove("catalog/CURRENT"));
  EXPECT_FALSE(known().decides) << "CURRENT is gone";
}

TEST_F(StoreViewsTest, ReadsNoContentTwice) {
  put("manifests/2-1-1", "a");
  const Digest content = disk_.digest_below(View::processes_die, "catalog");
  EXPECT_TRUE(views_.of(content, *disk_.look(View::processes_die)).decides);
  EXPECT_TRUE(views_.of(content, *Disk().look(View::processes_die)).decides) << "not looked at again";
}

}  // namespace
}  // namespace firedrill
