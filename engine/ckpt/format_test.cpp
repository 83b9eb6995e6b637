#include <gtest/gtest.h>

#include "engine/ckpt/frozen_root.h"
#include "engine/ckpt/test_run.h"

namespace firedrill {
namespace {

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
