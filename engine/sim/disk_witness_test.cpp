#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "engine/sim/disk.h"

namespace firedrill::sim {
namespace {

const DiskOptions with_witnesses{.dependent = "shards", .witness = "manifests", .unread = "tmp"};

// The files of a view that mean something, with their texts, in directories that are all there.
Digest digest_of_what_counts(const Disk& disk, View view, bool only_witnessed) {
  const auto files = disk.snapshot(view);
  const auto names = [&](const std::string& directory) {
    auto list = files->list(directory);
    return list ? *list : std::vector<std::string>();
  };
  Disk other;
  const auto copy = other.files({});
  const auto put = [&](const std::string& path) {
    auto from = files->open(path);
    const auto text = (*from)->read(0, *(*from)->size());
    auto to = copy->create(path);
    ASSERT_TRUE(text && to && (*to)->write(0, *text));
  };
  for (const char* top : {"manifests", "shards", "tmp"}) {
    if (files->stat(top)) {
      EXPECT_TRUE(copy->make_directory(top));
    }
  }
  for (const std::string& name : names("manifests")) put("manifests/" + name);
  if (!only_witnessed) {
    for (const std::string& name : names("tmp")) put("tmp/" + name);
  }
  for (const std::string& name : names("shards")) {
    if (only_witnessed && !files->stat("manifests/" + name)) continue;
    EXPECT_TRUE(copy->make_directory("shards/" + name));
    for (const std::string& shard : names("shards/" + name)) put("shards/" + name + "/" + shard);
  }
  return other.digest(View::processes_die);
}

// One step of a life: files come, change and go, are synced, and nodes lose what they had not.
void do_something(Rng& rng, Disk& disk) {
  const int node = static_cast<int>(rng.below(2));
  const auto files = disk.files({.node = node});
  const std::string id = std::to_string(rng.below(3));
  const std::string paths[] = {"manifests/" + id, "shards/" + id + "/part-" + std::to_string(rng.below(2)),
                               "shards/" + id + "/part-2", "tmp/" + id};
  const std::string path = paths[rng.below(4)];
  switch (rng.below(8)) {
    case 0: (void)files->remove(path); return;
    case 1: (void)files->remove("shards/" + id); return;
    case 2: (void)files->make_directory("shards/" + id); return;
    case 3: (void)files->rename("manifests/" + id, "manifests/" + std::to_string(rng.below(3))); return;
    case 4:
      for (const std::string& directory :
           {std::string(), std::string("manifests"), std::string("tmp"), "shards/" + id}) {
        (void)files->sync_directory(directory);
      }
      (void)files->sync_directory("shards");
      return;
    case 5: disk.lose_unsynced(node, [&](const UnsyncedItem&) { return rng.chance(1, 2); }); return;
    default:
      if (auto file = files->create(path)) {
        ASSERT_TRUE((*file)->write(0, Value::copy_of(std::to_string(rng.below(100)))));
        (void)(*file)->sync();
      }
  }
}

// Each view of a disk behind each step of some lives.
void in_many_lives(std::uint64_t seed, const std::function<void(Disk& disk, View view)>& check) {
  Rng rng(seed);
  Disk disk;
  for (int life = 0; life < 30; ++life) {
    disk.reset(with_witnesses);
    const auto files = disk.files({});
    ASSERT_TRUE(files->make_directory("manifests") && files->make_directory("shards") && files->make_directory("tmp"));
    for (int i = 0; i < 60; ++i) {
      do_something(rng, disk);
      for (const View view : {View::processes_die, View::power_fails}) {
        check(disk, view);
        if (testing::Test::HasFatalFailure()) FAIL() << "in life " << life << ", behind step " << i;
      }
    }
  }
}

TEST(DiskWitnesses, TheDigestIsOfWhatHasAWitnessWhateverHappenedBefore) {
  int without = 0;
  in_many_lives(5, [&](Disk& disk, View view) {
    ASSERT_EQ(disk.digest_of_witnessed(view), digest_of_what_counts(disk, view, true));
    ASSERT_EQ(disk.digest(view), digest_of_what_counts(disk, view, false));
    if (disk.digest_of_witnessed(view) != disk.digest(view)) ++without;
  });
  EXPECT_GT(without, 500);
}

// All that lies below shards/ has one of three witnesses; and the rest is what a disk without it has.
TEST(DiskWitnesses, TheSumsOfWhatDependsOnEachAreTheDigestBelow) {
  int with_shards = 0;
  in_many_lives(6, [&](Disk& disk, View view) {
    Digest sum;
    for (const char* witness : {"manifests/0", "manifests/1", "manifests/2"}) {
      add_to(sum, disk.sum_of_dependents(view, witness));
    }
    ASSERT_EQ(disk.digest_below(view, "shards"), sum);
    if (sum != Digest{}) ++with_shards;
    Digest below_the_root = disk.digest_below(view, "");
    Disk bare;
    for (const char* top : {"manifests", "shards", "tmp"}) {
      take_from(below_the_root, disk.digest_below(view, top));
      if (disk.snapshot(view)->stat(top)) {
        ASSERT_TRUE(bare.files({})->make_directory(top));
      }
    }
    ASSERT_EQ(below_the_root, bare.digest_below(View::processes_die, ""));
  });
  EXPECT_GT(with_shards, 500);
  const Disk empty;
  EXPECT_EQ(empty.digest_below(View::processes_die, "nowhere"), Digest{});
  EXPECT_EQ(empty.sum_of_dependents(View::processes_die, "manifests/nowhere"), Digest{});
}

TEST(DiskWitnesses, TheDigestOfOneIsOfAllThatDependsOnIt) {
  Disk disk;
  disk.reset(with_witnesses);
  const auto files = disk.files({});
  const auto put = [&](std::string_view path, std::string_view text) {
    (void)files->remove(path);
    auto file = files->create(path);
    ASSERT_TRUE(file && (*file)->write(0, Value::copy_of(text)));
  };
  const auto digest = [&](std::string_view name) { return disk.digest_with_dependents(View::processes_die, name); };
  for (const char* made : {"manifests", "shards", "shards/1", "shards/2"}) ASSERT_TRUE(files->make_directory(made));
  put("shards/1/a", "x");
  EXPECT_FALSE(digest("manifests/1"));
  put("manifests/1", "m");
  const auto first = digest("manifests/1");
  ASSERT_TRUE(first);
  put("shards/2/a", "of another");
  EXPECT_EQ(digest("manifests/1"), first);
  put("shards/1/a", "y");
  EXPECT_NE(digest("manifests/1"), first);
  put("shards/1/a", "x");
  EXPECT_EQ(digest("manifests/1"), first);
  put("shards/1/b", "more");
  EXPECT_NE(digest("manifests/1"), first);
  ASSERT_TRUE(files->remove("shards/1/b"));
  EXPECT_EQ(digest("manifests/1"), first);
  ASSERT_TRUE(files->rename("manifests/1", "manifests/2"));
  EXPECT_FALSE(digest("manifests/1"));
  EXPECT_NE(digest("manifests/2"), first);
  EXPECT_FALSE(disk.digest_with_dependents(View::power_fails, "manifests/2"));
}

// Two disks with the same names and other bytes below them.
TEST(DiskWitnesses, TheDigestByClassTellsClassesApartAndNotTheContentsOfOne) {
  Disk disks[2];
  for (int i = 0; i < 2; ++i) {
    disks[i].reset(with_witnesses);
    const auto files = disks[i].files({});
    const auto put = [&](std::string_view path, std::string_view text) {
      auto file = files->create(path);
      ASSERT_TRUE(file && (*file)->write(0, Value::copy_of(text)));
    };
    for (const char* made : {"manifests", "shards", "shards/1", "shards/2"}) ASSERT_TRUE(files->make_directory(made));
    for (const std::string id : {"1", "2"}) {
      put("shards/" + id + "/a", i == 0 ? "x" : "other");
      put("manifests/" + id, i == 0 ? "m" : "n");
    }
  }
  const auto digest = [](const Disk& disk, const std::function<Digest(const Digest&)>& class_of) {
    return disk.digest_by_class(View::processes_die, class_of);
  };
  const auto all_alike = [](const Digest&) { return Digest{1, 2}; };
  const auto each_its_own = [](const Digest& mark) { return mark; };
  const auto mark = disks[1].digest_with_dependents(View::processes_die, "manifests/2");
  ASSERT_TRUE(mark);
  const auto one_apart = [&](const Digest& of) { return of == *mark ? Digest{3, 4} : Digest{1, 2}; };
  EXPECT_EQ(digest(disks[0], all_alike), digest(disks[1], all_alike));
  EXPECT_NE(digest(disks[0], each_its_own), digest(disks[1], each_its_own));
  EXPECT_NE(digest(disks[0], one_apart), digest(disks[1], one_apart));
  const Digest before = digest(disks[1], all_alike);
  ASSERT_TRUE(disks[1].files({})->remove("manifests/2"));
  EXPECT_NE(digest(disks[1], all_alike), before) << "names count whatever the class";
}

}  // namespace
}  // namespace firedrill::sim
