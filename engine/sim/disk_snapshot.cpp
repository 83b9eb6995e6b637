// A view of a Disk as a file system of its own, for probes: reading only, contents shared with the disk. Syncs succeed
// and do nothing, since recovery syncs what it only reads.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/sim/disk.h"

namespace firedrill::sim {
namespace {

struct SnapshotNode {
  std::string path;
  FileKind kind = FileKind::file;
  Content content;
  Time modified{0};
};

Error read_only(std::string_view path) {
  return {.code = Code::io_error, .message = fmt::format("'{}' cannot change: this is a snapshot", path)};
}

class SnapshotFile final : public File {
 public:
  explicit SnapshotFile(const SnapshotNode& node) : node_(node) {}
  Status write(std::int64_t, const Value&) override { return read_only(node_.path); }
  Result<Value> read(std::int64_t offset, std::int64_t size) override { return node_.content.read(offset, size); }
  Result<std::int64_t> size() override { return node_.content.size(); }
  Status sync() override { return {}; }
  Status close() override { return {}; }

 private:
  const SnapshotNode& node_;
};

class SnapshotFileSystem final : public FileSystem {
 public:
  explicit SnapshotFileSystem(std::vector<SnapshotNode> nodes) : nodes_(std::move(nodes)) {
    std::sort(nodes_.begin(), nodes_.end(),
              [](const SnapshotNode& a, const SnapshotNode& b) { return a.path < b.path; });
  }

  Result<std::unique_ptr<File>> create(std::string_view path) override { return read_only(path); }
  Result<std::unique_ptr<File>> open(std::string_view path) override {
    FD_TRY(const SnapshotNode* node, find(path));
    if (node->kind != FileKind::file) {
      return Error{.code = Code::io_error, .message = fmt::format("'{}' is a directory", path)};
    }
    return std::unique_ptr<File>(std::make_unique<SnapshotFile>(*node));
  }
  Result<FileInfo> stat(std::string_view path) override {
    FD_TRY(const SnapshotNode* node, find(path));
    return FileInfo{.kind = node->kind, .size = node->content.size(), .modified = node->modified};
  }
  Result<std::vector<std::string>> list(std::string_view directory) override {
    FD_TRY(const SnapshotNode* top, find(directory));
    if (top->kind != FileKind::directory) {
      return Error{.code = Code::io_error, .message = fmt::format("'{}' is not a directory", directory)};
    }
    std::vector<std::string> names;
    for (const SnapshotNode& node : nodes_) {
      if (!node.path.empty() && parent_path(node.path) == directory) names.emplace_back(file_name(node.path));
    }
    return names;
  }
  Status rename(std::string_view from, std::string_view) override { return read_only(from); }
  Status remove(std::string_view path) override { return read_only(path); }
  Status make_directory(std::string_view path) override { return read_only(path); }
  Status sync_directory(std::string_view directory) override { return find_status(directory); }
  Status drop_cache(std::string_view path) override { return find_status(path); }
  Result<std::int64_t> free_space() override { return std::int64_t{0}; }

 private:
  Result<const SnapshotNode*> find(std::string_view path) const {
    const auto found = std::partition_point(nodes_.begin(), nodes_.end(),
                                            [path](const SnapshotNode& node) { return node.path < path; });
    if (found == nodes_.end() || found->path != path) {
      return Error{.code = Code::not_found, .message = fmt::format("no '{}'", path)};
    }
    return &*found;
  }
  Status find_status(std::string_view path) const {
    auto found = find(path);
    if (!found) return std::move(found).error();
    return {};
  }

  std::vector<SnapshotNode> nodes_;  // by path
};

}  // namespace

std::unique_ptr<FileSystem> Disk::snapshot(View view) const {
  std::vector<SnapshotNode> nodes;
  for (InodeId id = root; id < inode_count_; ++id) {
    const Inode& inode = at(id);
    for (const PathId path : inode.paths[index(view)]) {
      nodes.push_back({.path = paths_[path].text,
                       .kind = inode.kind,
                       .content = inode.content[index(view)],
                       .modified = inode.modified});
    }
  }
  return std::make_unique<SnapshotFileSystem>(std::move(nodes));
}

}  // namespace firedrill::sim
