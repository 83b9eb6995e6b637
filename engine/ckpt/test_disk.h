// A disk in memory for the tests of this folder: one tree seen by all ranks, under one mutex, and beside it what a
// power loss would leave (an entry lasts by a sync of its directory, contents by a sync of the file). A hook sees each
// operation before it happens and may fail it.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/job/job.h"
#include "engine/seam/file_system.h"

namespace firedrill {

struct DiskOperation {
  int rank = 0;
  FileOp op = FileOp::create;
  std::string path;
  std::string second;
  int number = 0;  // of this disk, from 1
};

class TestDisk {
 public:
  struct Inode {
    bool directory = false;
    std::string data;
    std::string durable;
    bool sync_failed = false;
  };
  using Tree = std::map<std::string, std::shared_ptr<Inode>>;

  explicit TestDisk(CatalogKind kind = CatalogKind::files) : catalog(kind) {}

  CatalogKind catalog;  // of the jobs that use this disk
  std::function<std::optional<Error>(const DiskOperation&)> hook;
  std::vector<DiskOperation> log;
  std::int64_t room = std::int64_t{1} << 40;
  Tree now;
  Tree durable;
  std::set<std::string> forgotten;  // names that a failed sync has marked clean: no later sync makes them durable
  std::mutex mutex;

  // Contents by path; directories end in '/'.
  std::map<std::string, std::string> contents() {
    std::map<std::string, std::string> all;
    for (const auto& [path, inode] : now) all[path + (inode->directory ? "/" : "")] = inode->data;
    return all;
  }
  // The data of a file, to be damaged.
  std::string& at(const std::string& path) { return now.at(path)->data; }
  bool has(const std::string& path) const { return now.contains(path); }
  std::unique_ptr<TestDisk> copy() const {
    auto other = std::make_unique<TestDisk>(catalog);
    for (const auto& [path, inode] : now) other->now[path] = std::make_shared<Inode>(*inode);
    return other;
  }
  // What a power loss leaves.
  std::unique_ptr<TestDisk> after_power_loss() const {
    auto other = std::make_unique<TestDisk>(catalog);
    for (const auto& [path, inode] : durable) {
      const std::string parent(parent_path(path));
      if (!parent.empty() && !other->now.contains(parent)) continue;
      auto left = std::make_shared<Inode>(*inode);
      left->data = left->durable;
      other->now[path] = left;
    }
    other->durable = other->now;
    return other;
  }
};

class TestFile final : public File {
 public:
  TestFile(TestDisk& disk, int rank, std::string path, std::shared_ptr<TestDisk::Inode> inode)
      : disk_(disk), rank_(rank), path_(std::move(path)), inode_(std::move(inode)) {}
  Status write(std::int64_t offset, const Value& bytes) override;
  Result<Value> read(std::int64_t offset, std::int64_t size) override;
  Result<std::int64_t> size() override;
  Status sync() override;
  Status close() override;

 private:
  TestDisk& disk_;
  int rank_;
  std::string path_;
  std::shared_ptr<TestDisk::Inode> inode_;
};

class TestFiles final : public FileSystem {
 public:
  TestFiles(TestDisk& disk, int rank) : disk_(disk), rank_(rank) {}

  Result<std::unique_ptr<File>> create(std::string_view path) override {
    FD_TRY(const auto lock, begin(disk_, rank_, FileOp::create, path));
    if (!parent_is_there(path)) return Error{.code = Code::not_found, .message = std::string(path)};
    const auto [at, added] = disk_.now.try_emplace(std::string(path), std::make_shared<TestDisk::Inode>());
    if (!added) return Error{.code = Code::already_exists, .message = std::string(path)};
    disk_.forgotten.erase(std::string(path));
    return std::unique_ptr<File>(std::make_unique<TestFile>(disk_, rank_, std::string(path), at->second));
  }
  Result<std::unique_ptr<File>> open(std::string_view path) override {
    FD_TRY(const auto lock, begin(disk_, rank_, FileOp::open, path));
    const auto at = disk_.now.find(std::string(path));
    if (at == disk_.now.end()) return Error{.code = Code::not_found, .message = std::string(path)};
    return std::unique_ptr<File>(std::make_unique<TestFile>(disk_, rank_, std::string(path), at->second));
  }
  Result<FileInfo> stat(std::string_view path) override {
    FD_TRY(const auto lock, begin(disk_, rank_, FileOp::stat, path));
    const auto at = disk_.now.find(std::string(path));
    if (at == disk_.now.end()) return Error{.code = Code::not_found, .message = std::string(path)};
    return FileInfo{.kind = at->second->directory ? FileKind::directory : FileKind::file,
                    .size = static_cast<std::int64_t>(at->second->data.size())};
  }
  Result<std::vector<std::string>> list(std::string_view directory) override {
    FD_TRY(const auto lock, begin(disk_, rank_, FileOp::list, directory));
    if (!directory.empty() && !disk_.now.contains(std::string(directory))) {
      return Error{.code = Code::not_found, .message = std::string(directory)};
    }
    std::vector<std::string> names;
    for (const auto& [path, inode] : disk_.now) {
      if (parent_path(path) == directory && !hidden.contains(path)) names.emplace_back(file_name(path));
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  Status rename(std::string_view from, std::string_view to) override {
    FD_TRY(const auto lock, begin(disk_, rank_, FileOp::rename, from, to));
    const auto at = disk_.now.find(std::string(from));
    if (at == disk_.now.end() || !parent_is_there(to))
      return Error{.code = Code::not_found, .message = std::string(from)};
    disk_.now[std::string(to)] = at->second;
    disk_.now.erase(std::string(from));
    disk_.forgotten.erase(std::string(from));
    disk_.forgotten.erase(std::string(to));
    return {};
  }
  Status remove(std::string_view path) override {
    FD_TRY(const auto lock, begin(disk_, rank_, FileOp::remove, path));
    for (const auto& [other, inode] : disk_.now) {
      if (parent_path(other) == path)
        return Error{.code = Code::io_error, .message = "not empty: " + std::string(path)};
    }
    if (disk_.now.erase(std::string(path)) == 0) return Error{.code = Code::not_found, .message = std::string(path)};
    disk_.forgotten.erase(std::string(path));
    return {};
  }
  Status make_directory(std::string_view path) override {
    FD_TRY(const auto lock, begin(disk_, rank_, FileOp::make_directory, path));
    if (!parent_is_there(path)) return Error{.code = Code::not_found, .message = std::string(path)};
    auto inode = std::make_shared<TestDisk::Inode>();
    inode->directory = true;
    if (!disk_.now.try_emplace(std::string(path), inode).second) {
      return Error{.code = Code::already_exists, .message = std::string(path)};
    }
    disk_.forgotten.erase(std::string(path));
    return {};
  }
  Status sync_directory(std::string_view directory) override {
    const auto lock = begin(disk_, rank_, FileOp::sync_directory, directory);
    std::set<std::string> changed;
    for (const auto* tree : {&disk_.now, &disk_.durable}) {
      for (const auto& [path, inode] : *tree) {
        if (parent_path(path) == directory && inode_at(disk_.now, path) != inode_at(disk_.durable, path)) {
          changed.insert(path);
        }
      }
    }
    if (!lock) {
      if (!lock.failed_with(Code::dead)) disk_.forgotten.insert(changed.begin(), changed.end());
      return lock.error();
    }
    for (const std::string& path : changed) {
      if (disk_.forgotten.contains(path)) continue;
      disk_.durable.erase(path);
      if (const auto inode = inode_at(disk_.now, path)) disk_.durable[path] = inode;
    }
    return {};
  }
  Status drop_cache(std::string_view path) override {
    FD_TRY(const auto lock, begin(disk_, rank_, FileOp::drop_cache, path));
    return {};
  }
  Result<std::int64_t> free_space() override {
    FD_TRY(const auto lock, begin(disk_, rank_, FileOp::free_space, ""));
    return disk_.room;
  }

  // Paths that this rank's listings leave out.
  std::set<std::string> hidden;

  static Result<std::unique_lock<std::mutex>> begin(TestDisk& disk, int rank, FileOp op, std::string_view path,
                                                    std::string_view second = {}) {
    std::unique_lock lock(disk.mutex);
    disk.log.push_back({.rank = rank,
                        .op = op,
                        .path = std::string(path),
                        .second = std::string(second),
                        .number = static_cast<int>(disk.log.size()) + 1});
    if (disk.hook) {
      if (auto error = disk.hook(disk.log.back())) return *std::move(error);
    }
    return lock;
  }

 private:
  static std::shared_ptr<TestDisk::Inode> inode_at(const TestDisk::Tree& tree, const std::string& path) {
    const auto at = tree.find(path);
    return at == tree.end() ? nullptr : at->second;
  }
  bool parent_is_there(std::string_view path) const {
    const std::string parent(parent_path(path));
    return parent.empty() || disk_.now.contains(parent);
  }

  TestDisk& disk_;
  int rank_;
};

inline Status TestFile::write(std::int64_t offset, const Value& bytes) {
  FD_TRY(const auto lock, TestFiles::begin(disk_, rank_, FileOp::write, path_));
  const auto start = static_cast<std::size_t>(offset);
  if (inode_->data.size() < start + bytes.size()) inode_->data.resize(start + bytes.size());
  inode_->data.replace(start, bytes.size(), bytes.text());
  return {};
}

inline Result<Value> TestFile::read(std::int64_t offset, std::int64_t size) {
  FD_TRY(const auto lock, TestFiles::begin(disk_, rank_, FileOp::read, path_));
  const std::string_view data = inode_->data;
  const std::size_t start = std::min(static_cast<std::size_t>(offset), data.size());
  return Value::copy_of(data.substr(start, static_cast<std::size_t>(size)));
}

inline Result<std::int64_t> TestFile::size() {
  const std::lock_guard lock(disk_.mutex);
  return static_cast<std::int64_t>(inode_->data.size());
}

inline Status TestFile::sync() {
  FD_TRY(const auto lock, TestFiles::begin(disk_, rank_, FileOp::sync, path_));
  inode_->durable = inode_->data;
  return {};
}

inline Status TestFile::close() {
  FD_TRY(const auto lock, TestFiles::begin(disk_, rank_, FileOp::close, path_));
  return {};
}

}  // namespace firedrill
