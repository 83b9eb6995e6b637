// What a sync of one node makes durable beside what others did, what a failed sync forgets, damage at rest, and
// modification times.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/sim/disk.h"
#include "engine/sim/machine.h"

namespace firedrill::sim {
namespace {

const UnsyncedChooser everything = [](const UnsyncedItem&) { return true; };
const UnsyncedChooser nothing = [](const UnsyncedItem&) { return false; };

// The files of one directory with their texts.
using Texts = std::map<std::string, std::string>;
Texts texts_of(FileSystem& files, std::string_view directory = "") {
  Texts texts;
  const auto names = files.list(directory);
  if (!names) return texts;
  for (const std::string& name : *names) {
    const auto file = files.open(directory.empty() ? name : std::string(directory) + "/" + name);
    if (file) texts[name] = (*file)->read(0, 100)->text();
  }
  return texts;
}
Texts durable_in(const Disk& disk, std::string_view directory = "") {
  return texts_of(*disk.snapshot(View::power_fails), directory);
}

struct TwoNodes {
  Disk disk;
  std::unique_ptr<FileSystem> mine = disk.files({.node = 0});
  std::unique_ptr<FileSystem> theirs = disk.files({.node = 1});
};

TEST(SimDiskSync, OfADirectoryLeavesTheNamesOfOtherNodesPending) {
  TwoNodes nodes;
  ASSERT_TRUE(nodes.mine->create("mine"));
  ASSERT_TRUE(nodes.theirs->create("theirs"));
  ASSERT_TRUE(nodes.mine->sync_directory(""));
  EXPECT_EQ(durable_in(nodes.disk), (Texts{{"mine", ""}}));
  ASSERT_EQ(nodes.disk.unsynced().size(), 1U);
  EXPECT_EQ(nodes.disk.unsynced()[0].node, 1);
  ASSERT_TRUE(nodes.theirs->sync_directory(""));
  EXPECT_EQ(durable_in(nodes.disk), (Texts{{"mine", ""}, {"theirs", ""}}));
}

TEST(SimDiskSync, OfAFileLeavesTheWritesOfOtherNodesPending) {
  TwoNodes nodes;
  const auto file = nodes.mine->create("a");
  ASSERT_TRUE(nodes.mine->sync_directory(""));
  ASSERT_TRUE((*file)->write(0, Value::copy_of("mine")));
  const auto id = nodes.disk.open("a");
  ASSERT_TRUE(nodes.disk.write(id->inode, 4, Value::copy_of("theirs"), "a", {.node = 1}));
  ASSERT_TRUE((*file)->sync());
  EXPECT_EQ(durable_in(nodes.disk), (Texts{{"a", "mine"}}));
  nodes.disk.sync(id->inode, "a", {.node = 1});
  EXPECT_EQ(durable_in(nodes.disk), (Texts{{"a", "minetheirs"}}));
  EXPECT_TRUE(nodes.disk.unsynced().empty());
}

TEST(SimDiskSync, TakesAlongWhatTheSameBytesAndNamesWereBefore) {
  TwoNodes nodes;
  const auto file = nodes.theirs->create("a");
  ASSERT_TRUE((*file)->write(0, Value::copy_of("old text")));
  const auto id = nodes.disk.open("a");
  ASSERT_TRUE(nodes.disk.write(id->inode, 0, Value::copy_of("new"), "a", {.node = 0}));
  nodes.disk.sync(id->inode, "a", {.node = 0});
  ASSERT_TRUE(nodes.mine->rename("a", "b"));
  ASSERT_TRUE(nodes.mine->sync_directory(""));
  EXPECT_EQ(durable_in(nodes.disk), (Texts{{"b", "new text"}}));
  ASSERT_TRUE(nodes.theirs->sync_directory(""));
  EXPECT_EQ(durable_in(nodes.disk), (Texts{{"b", "new text"}})) << "the name that mine took away does not come back";
}

TEST(SimDiskSync, ThatFailedMakesNothingDurableNorDoesALaterOne) {
  Disk disk;
  const auto files = disk.files({});
  const auto file = files->create("a");
  ASSERT_TRUE(files->sync_directory(""));
  ASSERT_TRUE((*file)->write(0, Value::copy_of("lost")));
  disk.forget_unsynced(FileOp::sync, "a", 0);
  ASSERT_TRUE((*file)->sync());
  EXPECT_EQ(durable_in(disk), (Texts{{"a", ""}}));
  ASSERT_TRUE((*file)->write(4, Value::copy_of("kept")));
  ASSERT_TRUE((*file)->sync());
  EXPECT_EQ(durable_in(disk), (Texts{{"a", std::string(4, '\0') + "kept"}}));
  EXPECT_EQ(texts_of(*files), (Texts{{"a", "lostkept"}})) << "the cache still has it";
  disk.lose_unsynced(0, nothing);
  EXPECT_EQ(texts_of(*files), (Texts{{"a", std::string(4, '\0') + "kept"}})) << "the cache went with the node";
}

TEST(SimDiskSync, OfADirectoryThatFailedForgetsItsNames) {
  TwoNodes nodes;
  ASSERT_TRUE(nodes.mine->create("lost"));
  ASSERT_TRUE(nodes.theirs->create("theirs"));
  nodes.disk.forget_unsynced(FileOp::sync_directory, "", 0);
  ASSERT_TRUE(nodes.mine->create("kept"));
  ASSERT_TRUE(nodes.mine->sync_directory(""));
  ASSERT_TRUE(nodes.theirs->sync_directory(""));
  EXPECT_EQ(durable_in(nodes.disk), (Texts{{"kept", ""}, {"theirs", ""}}));
  nodes.disk.lose_unsynced(0, everything);
  EXPECT_EQ(texts_of(*nodes.mine), (Texts{{"kept", ""}, {"theirs", ""}}));
  nodes.disk.forget_unsynced(FileOp::sync, "nowhere", 0);
}

TEST(SimDiskDamage, IsThereForAllAndDurable) {
  Disk disk;
  const auto files = disk.files({});
  const auto file = files->create("a");
  ASSERT_TRUE((*file)->write(0, Value::copy_of("text")));
  ASSERT_TRUE((*file)->sync() && files->sync_directory(""));
  const Digest before = disk.digest(View::power_fails);
  ASSERT_TRUE(disk.overwrite("a", 1, Value::copy_of("E")));
  EXPECT_EQ(texts_of(*files), (Texts{{"a", "tExt"}}));
  EXPECT_EQ(durable_in(disk), (Texts{{"a", "tExt"}}));
  EXPECT_NE(disk.digest(View::power_fails), before);
  EXPECT_TRUE(disk.overwrite("b", 0, Value::copy_of("x")).failed_with(Code::not_found));
  EXPECT_TRUE(disk.overwrite("a", 3, Value::copy_of("xy")).failed_with(Code::internal)) << "it holds 4 bytes";
  EXPECT_EQ(texts_of(*files), (Texts{{"a", "tExt"}}));
}

TEST(SimDiskTime, IsThatOfTheNodeThatChangedTheContent) {
  FiberPool pool;
  Machine machine(pool);
  machine.reset({});
  machine.skew_clock(1, std::chrono::hours(2));
  Disk& disk = machine.disk();
  const auto mine = disk.files({.node = 0});
  const auto theirs = disk.files({.node = 1});
  ASSERT_TRUE(mine->create("a"));
  ASSERT_TRUE(theirs->create("b"));
  EXPECT_EQ(mine->stat("a")->modified, machine.now());
  EXPECT_EQ(mine->stat("b")->modified, machine.now() + std::chrono::hours(2));
  EXPECT_EQ(disk.snapshot(View::processes_die)->stat("b")->modified, mine->stat("b")->modified);
  machine.skew_clock(1, -std::chrono::hours(3));
  const Digest digest = disk.digest(View::processes_die);
  const auto id = disk.open("a");
  ASSERT_TRUE(disk.write(id->inode, 0, Value::copy_of("x"), "a", {.node = 1}));
  EXPECT_EQ(mine->stat("a")->modified, machine.now() - std::chrono::hours(1)) << "a write of the wrong clock";
  EXPECT_NE(disk.digest(View::processes_die), digest);
  machine.reset({});
  EXPECT_EQ(machine.clock_skew(1), Duration{0});
}

}  // namespace
}  // namespace firedrill::sim
