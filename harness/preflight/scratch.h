// ScratchFileSystem: a disk that nothing is written to: what is made, renamed or removed stays in memory, above what is
// there. A restore from somebody's checkpoints can be tried with it and leaves no trace.
//
// Each rank has its own, so it serves what only one rank writes: a claim of an attempt, marks, a catalog's log.
// Threads: one. Errors: those of the seam.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/seam/file_system.h"

namespace firedrill::preflight {

class ScratchFileSystem final : public FileSystem {
 public:
  explicit ScratchFileSystem(FileSystem& below) : below_(below) {}

  Result<std::unique_ptr<File>> create(std::string_view path) override;
  Result<std::unique_ptr<File>> open(std::string_view path) override;
  Result<FileInfo> stat(std::string_view path) override;
  Result<std::vector<std::string>> list(std::string_view directory) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status make_directory(std::string_view path) override;
  Status sync_directory(std::string_view) override { return {}; }
  Status drop_cache(std::string_view path) override;
  Result<std::int64_t> free_space() override { return below_.free_space(); }

 private:
  class ScratchFile;
  using Bytes = std::shared_ptr<std::string>;

  bool exists(std::string_view path);
  void make(std::string_view path, Bytes bytes);

  FileSystem& below_;
  std::map<std::string, Bytes, std::less<>> made_;  // no bytes: a directory
  std::set<std::string, std::less<>> removed_;      // of what is below
};

}  // namespace firedrill::preflight
