// What control groups leave, on made-up trees of both versions.
#include "harness/preflight/control_groups.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

namespace firedrill::preflight {
namespace {

namespace fs = std::filesystem;

class Tree {
 public:
  Tree() {
    std::string pattern = (fs::temp_directory_path() / "firedrill-groups-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~Tree() { fs::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  ControlGroups groups(const std::string& membership) const {
    write("membership", membership);
    return ControlGroups(root_, root_ / "membership");
  }

 private:
  fs::path root_;
};

TEST(ControlGroups, the_tightest_group_around_a_process_limits_it_in_version_2) {
  const Tree tree;
  tree.write("job/cpu.max", "150000 100000");
  tree.write("job/rank/cpu.max", "max 100000");
  tree.write("job/memory.max", "1000");
  tree.write("job/memory.current", "900");
  tree.write("job/rank/memory.max", "5000");
  tree.write("job/rank/memory.current", "100");
  const ControlGroups groups = tree.groups("0::/job/rank\n");
  EXPECT_DOUBLE_EQ(groups.cores_within(8), 1.5);
  EXPECT_DOUBLE_EQ(groups.cores_within(1), 1);
  EXPECT_EQ(groups.memory_within(10'000), 100);
}

TEST(ControlGroups, the_tightest_group_around_a_process_limits_it_in_version_1) {
  const Tree tree;
  tree.write("cpu/job/cpu.cfs_quota_us", "50000");
  tree.write("cpu/job/cpu.cfs_period_us", "100000");
  tree.write("cpu/job/rank/cpu.cfs_quota_us", "-1");
  tree.write("cpu/job/rank/cpu.cfs_period_us", "100000");
  tree.write("memory/job/memory.limit_in_bytes", "1000");
  tree.write("memory/job/memory.usage_in_bytes", "300");
  const ControlGroups groups = tree.groups("4:memory:/job/rank\n3:cpu,cpuacct:/job/rank\n");
  EXPECT_DOUBLE_EQ(groups.cores_within(8), 0.5);
  EXPECT_EQ(groups.memory_within(10'000), 700);
}

// In a container the root is its own group, and the path is that of the host.
TEST(ControlGroups, a_path_that_is_not_there_leaves_the_limits_of_the_root) {
  const Tree tree;
  tree.write("memory.max", "1000");
  tree.write("memory.current", "400");
  tree.write("memory.stat", "anon 100\ninactive_file 250\n");
  EXPECT_EQ(tree.groups("0::/host/only\n").memory_within(10'000), 850) << "what can be dropped is not used";
}

TEST(ControlGroups, without_limits_all_is_left) {
  const Tree tree;
  const ControlGroups groups = tree.groups("0::/\n");
  EXPECT_DOUBLE_EQ(groups.cores_within(8), 8);
  EXPECT_EQ(groups.memory_within(10'000), 10'000);
}

}  // namespace
}  // namespace firedrill::preflight
