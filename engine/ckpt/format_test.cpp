#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

const fs::path frozen_root = "golden/format-1";

// The files of a real directory, as a disk.
std::unique_ptr<TestDisk> disk_of(const fs::path& root) {
  auto disk = std::make_unique<TestDisk>();
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    auto inode = std::make_shared<TestDisk::Inode>();
    inode->directory = entry.is_directory();
    if (!inode->directory) {
      std::ostringstream data;
      data << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      inode->data = data.str();
    }
    disk->now[entry.path().lexically_relative(root).generic_string()] = inode;
  }
  return disk;
}

// The digest of the job that wrote it; jobs may gain fields, the frozen checkpoint does not.
Digest frozen_job(TestDisk& disk) {
  DirectCompute compute;
  const auto manifest = parse_manifest(compute, Value::copy_of(disk.at("manifests/2-1-1")));
  EXPECT_TRUE(manifest.ok());
  return manifest->head().job;
}

TEST(FormatOne, IsStillReadByFourTwoAndOneRanks) {
  for (const int ranks : {4, 2, 1}) {
    const auto disk = disk_of(frozen_root);
    TestAttempt attempt(*disk, 2, ranks);
    attempt.job_digest = frozen_job(*disk);
    expect_ok(attempt.train({}));
    ASSERT_TRUE(attempt.restored.has_value());
    EXPECT_EQ(to_string(*attempt.restored), "2-1-1");
  }
}

// Whoever changes the bytes that are written must raise the version.
TEST(FormatOne, IsWhatThisVersionWrites) {
  const auto frozen = disk_of(frozen_root);
  const Digest job = frozen_job(*frozen);
  TestDisk disk;
  TestAttempt attempt(disk);
  attempt.job_digest = job;
  expect_ok(attempt.train({2}));
  for (const auto& [path, inode] : frozen->now) {
    if (inode->directory || path.starts_with("manifests/")) continue;  // a manifest names the job's fields
    ASSERT_TRUE(disk.has(path)) << path;
    EXPECT_EQ(disk.at(path), inode->data) << path;
  }
}

}  // namespace
}  // namespace firedrill
