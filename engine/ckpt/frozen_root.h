// For tests: the root that format version 1 wrote (golden/format-1), as a disk in memory. Run from
// the root of the source tree.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "engine/ckpt/manifest.h"
#include "engine/ckpt/test_disk.h"

namespace firedrill {

inline constexpr std::string_view frozen_root = "golden/format-1";

// The files of a real directory, as a disk.
inline std::unique_ptr<TestDisk> disk_of(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
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
inline Digest frozen_job(TestDisk& disk) {
  DirectCompute compute;
  const auto manifest = parse_manifest(compute, Value::copy_of(disk.at("manifests/2-1-1")));
  FD_CHECK(manifest.ok(), "the frozen manifest cannot be read");
  return manifest->head().job;
}

}  // namespace firedrill
