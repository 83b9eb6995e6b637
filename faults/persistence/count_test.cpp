// The numbers that can be counted by hand, and the counter against the walk.
#include <gtest/gtest.h>

#include "faults/persistence/counter.h"
#include "faults/persistence/test_trace.h"
#include "faults/persistence/test_walk.h"

namespace firedrill::crash {
namespace {

struct Shards {
  int ranks = 1;
  int shards = 3;
  bool synced = true;
};

Trace shards_of(const Shards& shards) {
  TraceBuilder builder;
  builder.base("shards");
  for (int rank = 0; rank < shards.ranks; ++rank) {
    builder.rank(rank);
    for (int shard = 0; shard < shards.shards; ++shard) {
      const std::string path = "shards/" + std::to_string(rank) + "-" + std::to_string(shard);
      builder.create(path);
      builder.write(path, 0, pattern(5 * sector_size, rank * 10 + shard));
      if (shards.synced) builder.sync(path);
    }
  }
  return builder.trace();
}

std::uint64_t walked(const CrashSpace& space) {
  std::uint64_t leaves = 0;
  std::set<Content> contents;
  SpaceWalk(space).run([&](Partial& partial) {
    ++leaves;
    contents.insert(SpaceWalk::content(partial));
  });
  EXPECT_EQ(leaves, contents.size()) << "a content was met twice";
  return leaves;
}

TEST(Count, AddsMultipliesAndPrintsNumbersThatNoMachineWordHolds) {
  Count power = 1;
  for (int i = 0; i < 64; ++i) power *= Count(10);
  EXPECT_EQ(power.to_string(), "1" + std::string(64, '0'));
  EXPECT_EQ((power + Count(7)).to_string(), "1" + std::string(63, '0') + "7");
  EXPECT_EQ(power.to_short_string(), "1.00e64");
  EXPECT_EQ(Count(3'418'801).to_short_string(), "3418801");
  EXPECT_EQ(Count(18'446'744'073'709'551'615U).to_string(), "18446744073709551615");
  EXPECT_EQ((power * Count()).to_string(), "0");
  EXPECT_TRUE(Count(5) < power);
  EXPECT_FALSE(power < Count(5));
  EXPECT_DOUBLE_EQ(power.to_double(), 1e64);
}

TEST(CrashSpace, OneUnsyncedShardHasSevenContents) {
  const auto space = space_of(shards_of({.shards = 1}));
  EXPECT_EQ(walked(*space), 7);
  EXPECT_EQ(count(*space), Count(7));
}

TEST(CrashSpace, ThreeShardsSyncedOneAfterAnotherHave43Contents) {
  const auto space = space_of(shards_of({}));
  EXPECT_EQ(walked(*space), 43);  // 7 + 2 * 6 + 4 * 6
  EXPECT_EQ(count(*space), Count(43));
}

TEST(CrashSpace, IndependentRanksMultiply) {
  EXPECT_EQ(walked(*space_of(shards_of({.ranks = 2}))), 43 * 43);
  EXPECT_EQ(count(*space_of(shards_of({.ranks = 2}))), Count(43 * 43));
  EXPECT_EQ(count(*space_of(shards_of({.ranks = 4}))), Count(3'418'801));
}

TEST(CrashSpace, ShardsWithoutASyncBetweenThemAreIndependentOfEachOther) {
  EXPECT_EQ(walked(*space_of(shards_of({.synced = false}))), 343);
  Count expected = 1;
  for (int i = 0; i < 24; ++i) expected *= Count(7);
  EXPECT_EQ(count(*space_of(shards_of({.ranks = 8, .synced = false}))), expected);
}

TEST(CrashSpace, CountsWhatNobodyCanEnumerate) {
  Count expected = 1;
  for (int i = 0; i < 64; ++i) expected *= Count(43);
  EXPECT_EQ(count(*space_of(shards_of({.ranks = 64}))), expected);
}

TEST(CrashSpace, TheContentsThatExtendTheValuesOfACellAddUpToAll) {
  const auto space = space_of(shards_of({.ranks = 2}));
  Counter counter(*space);
  const CellId name = *space->name_cell(space->cell(space->names(root_inode)[0]).values[0].inode, "1-2");
  Partial partial(*space);
  Count sum;
  for (ValueIndex value = 0; value < space->cell(name).values.size(); ++value) {
    ASSERT_TRUE(partial.assign(name, value));
    sum += counter.count(partial);
    partial.undo();
  }
  EXPECT_EQ(sum, Count(43 * 43));
}

}  // namespace
}  // namespace firedrill::crash
