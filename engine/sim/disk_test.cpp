#include "engine/sim/disk.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/base/rng.h"

namespace firedrill::sim {
namespace {

constexpr View all_see = View::processes_die;
constexpr View after_power_loss = View::power_fails;

const UnsyncedChooser everything = [](const UnsyncedItem&) { return true; };
const UnsyncedChooser nothing = [](const UnsyncedItem&) { return false; };

void put(FileSystem& files, std::string_view path, std::string_view text, bool sync = false) {
  auto file = files.create(path);
  ASSERT_TRUE(file) << describe(file.error());
  ASSERT_TRUE((*file)->write(0, Value::copy_of(text)));
  if (sync) {
    ASSERT_TRUE((*file)->sync());
  }
}

// Every path with its text ("/" for a directory), found through the seam.
void collect(FileSystem& files, const std::string& directory, std::map<std::string, std::string>& tree) {
  auto names = files.list(directory);
  ASSERT_TRUE(names);
  for (const std::string& name : *names) {
    const std::string path = directory.empty() ? name : directory + "/" + name;
    auto info = files.stat(path);
    ASSERT_TRUE(info) << path;
    if (info->kind == FileKind::directory) {
      tree[path] = "/";
      collect(files, path, tree);
    } else {
      auto file = files.open(path);
      ASSERT_TRUE(file);
      auto text = (*file)->read(0, info->size);
      ASSERT_TRUE(text);
      tree[path] = text->text();
    }
  }
}
std::map<std::string, std::string> tree_of(FileSystem& files) {
  std::map<std::string, std::string> tree;
  collect(files, "", tree);
  return tree;
}
std::map<std::string, std::string> tree_of(const Disk& disk, View view) { return tree_of(*disk.snapshot(view)); }
using Tree = std::map<std::string, std::string>;

TEST(SimDisk, AReadOfOneWholeWriteIsThatVeryValue) {
  Disk disk;
  const auto files = disk.files({});
  auto file = files->create("a");
  const Value first = Value::copy_of("first");
  const Value second = Value::copy_of("second");
  ASSERT_TRUE((*file)->write(0, first));
  ASSERT_TRUE((*file)->write(5, second));
  EXPECT_EQ((*file)->read(0, 5)->identity(), first.identity());
  EXPECT_EQ((*file)->read(5, 100)->identity(), second.identity());
  EXPECT_EQ((*file)->read(0, 11)->text(), "firstsecond");
  EXPECT_EQ((*file)->read(1, 4)->text(), "irst");
}

TEST(SimDisk, PowerLossLeavesSyncedDataUnderSyncedNamesOnly) {
  Disk disk;
  const auto files = disk.files({});
  put(*files, "both", "text", true);
  put(*files, "name_only", "text", false);
  ASSERT_TRUE(files->sync_directory(""));
  put(*files, "data_only", "text", true);
  EXPECT_EQ(tree_of(disk, after_power_loss), (Tree{{"both", "text"}, {"name_only", ""}}));
  EXPECT_EQ(tree_of(disk, all_see), (Tree{{"both", "text"}, {"data_only", "text"}, {"name_only", "text"}}));
}

TEST(SimDisk, ASyncedNameInADirectoryWithoutOneIsOutOfReachUntilThatOneIsSynced) {
  Disk disk;
  const auto files = disk.files({});
  ASSERT_TRUE(files->make_directory("d"));
  put(*files, "d/a", "text", true);
  ASSERT_TRUE(files->sync_directory("d"));
  EXPECT_EQ(tree_of(disk, after_power_loss), Tree{});
  ASSERT_TRUE(files->sync_directory(""));
  EXPECT_EQ(tree_of(disk, after_power_loss), (Tree{{"d", "/"}, {"d/a", "text"}}));
}

TEST(SimDisk, ARenameIsDurableWithTheSyncOfItsDirectoryOnly) {
  Disk disk;
  const auto files = disk.files({});
  put(*files, "tmp", "new", true);
  put(*files, "final", "old", true);
  ASSERT_TRUE(files->sync_directory(""));
  ASSERT_TRUE(files->rename("tmp", "final"));
  EXPECT_EQ(tree_of(disk, after_power_loss), (Tree{{"final", "old"}, {"tmp", "new"}}));
  EXPECT_EQ(tree_of(disk, all_see), (Tree{{"final", "new"}}));
  ASSERT_TRUE(files->sync_directory(""));
  EXPECT_EQ(tree_of(disk, after_power_loss), (Tree{{"final", "new"}}));
}

TEST(SimDisk, ANodeLosesItsOwnUnsyncedChangesOnly) {
  Disk disk;
  const auto mine = disk.files({.node = 0});
  const auto theirs = disk.files({.node = 1});
  put(*mine, "kept", "before", true);
  ASSERT_TRUE(mine->sync_directory(""));
  put(*mine, "mine", "m");
  put(*theirs, "theirs", "t");
  ASSERT_TRUE(mine->remove("kept"));
  const Disk::Lost lost = disk.lose_unsynced(0, everything);
  EXPECT_EQ(lost.data, 1);
  EXPECT_EQ(lost.names, 2);
  EXPECT_EQ(tree_of(disk, all_see), (Tree{{"kept", "before"}, {"theirs", "t"}}));
  EXPECT_EQ(disk.unsynced().size(), 2U) << "the other node's are still unsynced";
  EXPECT_EQ(tree_of(disk, after_power_loss), (Tree{{"kept", "before"}}));
}

TEST(SimDisk, WhatAChooserKeepsIsDurable) {
  Disk disk;
  const auto files = disk.files({.node = 2});
  put(*files, "a", "text");
  std::vector<UnsyncedItem> asked;
  disk.lose_unsynced(2, [&](const UnsyncedItem& item) {
    asked.push_back(item);
    return item.kind == UnsyncedKind::data;
  });
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].kind, UnsyncedKind::name);
  EXPECT_EQ(asked[0].path, "a");
  EXPECT_EQ(asked[1].size, 4);
  EXPECT_EQ(asked[1].path, "a");
  EXPECT_EQ(tree_of(disk, all_see), (Tree{{"a", ""}}));
  EXPECT_EQ(tree_of(disk, after_power_loss), (Tree{{"a", ""}}));
}

TEST(SimDisk, ALostWriteInTheMiddleReadsAsZeros) {
  Disk disk;
  const auto files = disk.files({});
  auto file = files->create("a");
  ASSERT_TRUE((*file)->write(0, Value::copy_of("11")));
  ASSERT_TRUE((*file)->write(2, Value::copy_of("22")));
  ASSERT_TRUE((*file)->write(4, Value::copy_of("33")));
  disk.lose_unsynced(0, [](const UnsyncedItem& item) { return item.offset == 2; });
  EXPECT_EQ(tree_of(disk, all_see), (Tree{{"a", std::string("11\0\00033", 6)}}));
}

TEST(SimDisk, ALostHalfOfARenameLeavesBothNamesOrNone) {
  for (const bool removal_lost : {false, true}) {
    Disk disk;
    const auto files = disk.files({});
    put(*files, "old", "text", true);
    ASSERT_TRUE(files->sync_directory(""));
    ASSERT_TRUE(files->rename("old", "new"));
    disk.lose_unsynced(0, [&](const UnsyncedItem& item) { return item.removal == removal_lost; });
    EXPECT_EQ(tree_of(disk, all_see), removal_lost ? (Tree{{"new", "text"}, {"old", "text"}}) : Tree{});
  }
}

TEST(SimDisk, RemovedFilesGiveTheirSpaceBack) {
  Disk disk;
  disk.reset({.capacity = 10});
  const auto files = disk.files({});
  put(*files, "a", "123456");
  auto file = files->create("b");
  ASSERT_TRUE(file);
  EXPECT_TRUE((*file)->write(0, Value::copy_of("12345")).failed_with(Code::no_space));
  EXPECT_EQ(*(*file)->size(), 0) << "the failed write had no effect";
  ASSERT_TRUE((*file)->write(0, Value::copy_of("1234")));
  EXPECT_EQ(*files->free_space(), 0);
  EXPECT_TRUE(files->create("c").failed_with(Code::no_space));
  EXPECT_TRUE(files->make_directory("d").failed_with(Code::no_space));
  ASSERT_TRUE(files->remove("a"));
  EXPECT_EQ(*files->free_space(), 6);
}

TEST(SimDisk, ASnapshotIsIndependentAndRefusesWrites) {
  Disk disk;
  const auto files = disk.files({});
  ASSERT_TRUE(files->make_directory("d"));
  put(*files, "d/a", "before");
  const auto snapshot = disk.snapshot(all_see);
  ASSERT_TRUE(files->remove("d/a"));
  EXPECT_EQ(tree_of(*snapshot), (Tree{{"d", "/"}, {"d/a", "before"}}));
  EXPECT_TRUE(snapshot->create("b").failed_with(Code::io_error));
  EXPECT_TRUE(snapshot->remove("d/a").failed_with(Code::io_error));
  EXPECT_TRUE(snapshot->rename("d/a", "b").failed_with(Code::io_error));
  EXPECT_TRUE(snapshot->make_directory("e").failed_with(Code::io_error));
  auto file = snapshot->open("d/a");
  ASSERT_TRUE(file);
  EXPECT_TRUE((*file)->write(0, Value::copy_of("x")).failed_with(Code::io_error));
  EXPECT_TRUE((*file)->sync());
  EXPECT_TRUE(snapshot->open("b").failed_with(Code::not_found));
}

TEST(SimDisk, ChangesAreToldWithTheirIssuerAndFailuresAreNot) {
  Disk disk;
  std::string told;
  disk.on_change = [&](const DiskChange& change) {
    told += std::string(to_string(change.op)) + " " + std::string(change.path);
    if (!change.second.empty()) told += " " + std::string(change.second);
    told += " by " + std::to_string(change.issuer.rank) + "; ";
  };
  const auto files = disk.files({.rank = 3});
  put(*files, "a", "text", true);
  EXPECT_FALSE(files->create("a"));
  EXPECT_FALSE(files->remove("b"));
  ASSERT_TRUE(files->stat("a"));
  ASSERT_TRUE(files->rename("a", "b"));
  ASSERT_TRUE(files->sync_directory(""));
  EXPECT_EQ(told, "create a by 3; write a by 3; sync a by 3; rename a b by 3; sync_directory  by 3; ");
}

TEST(SimDisk, TheLogHoldsWhatWasDone) {
  Disk disk;
  disk.reset({.log = true});
  const auto files = disk.files({.node = 1, .rank = 2, .attempt = 3});
  put(*files, "a", "text");
  ASSERT_EQ(disk.log().size(), 2U);
  EXPECT_EQ(disk.log()[1].op, FileOp::write);
  EXPECT_EQ(disk.log()[1].bytes.text(), "text");
  EXPECT_EQ(disk.log()[1].file, disk.log()[0].file);
  EXPECT_EQ(disk.log()[1].issuer.attempt, 3);
}

TEST(SimDisk, AResetForgetsFilesAndWhatIsStillOpen) {
  Disk disk;
  const auto files = disk.files({});
  const Digest empty = disk.digest(all_see);
  auto file = files->create("a");
  ASSERT_TRUE(file);
  EXPECT_NE(disk.digest(all_see), empty);
  disk.reset({});
  EXPECT_EQ(disk.digest(all_see), empty);
  EXPECT_TRUE((*file)->write(0, Value::copy_of("x")).failed_with(Code::io_error));
  EXPECT_EQ(tree_of(disk, all_see), Tree{});
}

TEST(SimDisk, ARemovedFileThatNobodyHoldsGivesItsContentBack) {
  Disk disk;
  const auto files = disk.files({});
  const Value value = Value::copy_of("text");
  auto file = files->create("a");
  ASSERT_TRUE((*file)->write(0, value));
  ASSERT_TRUE((*file)->sync());
  ASSERT_TRUE((*file)->close());
  ASSERT_TRUE(files->sync_directory(""));
  ASSERT_TRUE(files->remove("a"));
  EXPECT_FALSE(value.unique()) << "its durable name still holds it";
  ASSERT_TRUE(files->sync_directory(""));
  EXPECT_TRUE(value.unique());
}

// One random operation on a few names in two directories; failures are fine.
void disturb(Rng& rng, std::vector<std::unique_ptr<FileSystem>>& nodes, int step) {
  FileSystem& files = *nodes[rng.below(nodes.size())];
  const auto directory = [&] { return std::string(rng.chance(1, 3) ? "" : rng.chance(1, 2) ? "d/" : "e/"); };
  const auto path = [&] { return directory() + std::string(1, static_cast<char>('a' + rng.below(3))); };
  switch (rng.below(9)) {
    case 0: (void)files.make_directory(rng.chance(1, 2) ? "d" : "e"); break;
    case 1:
    case 2:
    case 3: {
      auto file = files.create(path());
      if (!file) break;
      (void)(*file)->write(static_cast<std::int64_t>(rng.below(3)), Value::copy_of("text" + std::to_string(step)));
      if (rng.chance(1, 2)) (void)(*file)->sync();
      if (rng.chance(1, 2)) (void)(*file)->write(1, Value::copy_of("more"));
      break;
    }
    case 4: (void)files.rename(path(), path()); break;
    case 5: (void)files.remove(rng.chance(1, 4) ? "d" : path()); break;
    case 6:
    case 7: (void)files.sync_directory(rng.chance(1, 2) ? "" : rng.chance(1, 2) ? "d" : "e"); break;
    default: (void)files.rename(rng.chance(1, 2) ? "d" : "e", rng.chance(1, 2) ? "d" : "e"); break;
  }
}

// Builds a disk with the given contents in the same pieces, and takes its digest.
Digest digest_of_copy(FileSystem& from, const Tree& tree) {
  Disk copy;
  const auto files = copy.files({});
  for (const auto& [path, text] : tree) {
    if (text == "/") {
      EXPECT_TRUE(files->make_directory(path));
      continue;
    }
    auto source = from.open(path);
    auto file = files->create(path);
    if (text.empty()) continue;
    EXPECT_TRUE((*file)->write(0, *(*source)->read(0, static_cast<std::int64_t>(text.size()))));
  }
  return copy.digest(all_see);
}

TEST(SimDisk, DigestsNameTheTreesWhateverHappenedBefore) {
  // By tree: the digest seen first. Contents of one piece only, or equal trees may differ in their pieces.
  std::map<Tree, Digest> digests;
  int seen_again = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Rng rng(seed);
    Disk disk;
    std::vector<std::unique_ptr<FileSystem>> nodes;
    for (int node = 0; node < 2; ++node) nodes.push_back(disk.files({.node = node}));
    for (int step = 0; step < 60; ++step) {
      disturb(rng, nodes, step % 2);
      if (step % 20 == 19) {
        const UnsyncedChooser chooser = [&](const UnsyncedItem&) { return rng.chance(1, 2); };
        disk.lose_unsynced(static_cast<int>(rng.below(2)), chooser);
      }
      for (const View view : {all_see, after_power_loss}) {
        const auto snapshot = disk.snapshot(view);
        const Tree tree = tree_of(*snapshot);
        EXPECT_EQ(tree_of(*disk.look(view)), tree);
        bool one_piece = true;
        for (const auto& [path, text] : tree) {
          if (text == "/" || text.empty()) continue;
          auto file = snapshot->open(path);
          const auto size = static_cast<std::int64_t>(text.size());
          one_piece = one_piece && (*file)->read(0, size)->identity() == (*file)->read(0, size)->identity();
        }
        if (!one_piece) continue;
        EXPECT_EQ(disk.digest(view), digest_of_copy(*snapshot, tree));
        const auto [place, is_new] = digests.emplace(tree, disk.digest(view));
        EXPECT_EQ(place->second, disk.digest(view));
        seen_again += !is_new;
      }
    }
    for (const int node : {0, 1}) disk.lose_unsynced(node, seed % 2 == 0 ? everything : nothing);
    EXPECT_EQ(disk.digest(all_see), disk.digest(after_power_loss));
    EXPECT_EQ(tree_of(disk, all_see), tree_of(disk, after_power_loss));
    EXPECT_TRUE(disk.unsynced().empty());
  }
  EXPECT_GT(seen_again, 1000);
  EXPECT_GT(digests.size(), 100U);
}

TEST(SimDisk, ARewrittenFileHasTheDigestOfItsLastContent) {
  const Value last = Value::copy_of("last one");
  Disk once;
  ASSERT_TRUE((*once.files({})->create("a"))->write(0, last));
  Disk twice;
  auto file = twice.files({})->create("a");
  ASSERT_TRUE((*file)->write(0, Value::copy_of("first")));
  ASSERT_TRUE((*file)->write(2, Value::copy_of("second")));
  EXPECT_NE(twice.digest(all_see), once.digest(all_see));
  ASSERT_TRUE((*file)->write(0, last));
  EXPECT_EQ(twice.digest(all_see), once.digest(all_see));
}

TEST(SimDisk, LosingEverythingLeavesWhatAPowerLossLeaves) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    Disk disk;
    std::vector<std::unique_ptr<FileSystem>> nodes;
    for (int node = 0; node < 3; ++node) nodes.push_back(disk.files({.node = node}));
    for (int step = 0; step < 50; ++step) disturb(rng, nodes, step);
    const Tree durable = tree_of(disk, after_power_loss);
    const Digest digest = disk.digest(after_power_loss);
    for (int node = 0; node < 3; ++node) disk.lose_unsynced(node, everything);
    EXPECT_EQ(tree_of(*nodes[0]), durable);
    EXPECT_EQ(disk.digest(all_see), digest);
  }
}

}  // namespace
}  // namespace firedrill::sim
