// A view of a Disk as a file system of its own, for probes: reading only, either a copy that stays as it is or a look
// at the disk itself. Syncs succeed and do nothing, since recovery syncs what it only reads.
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
Error nothing_at(std::string_view path) { return {.code = Code::not_found, .message = fmt::format("no '{}'", path)}; }
Error no_directory(std::string_view path) {
  return {.code = Code::io_error, .message = fmt::format("'{}' is not a directory", path)};
}
Error no_file(std::string_view path) {
  return {.code = Code::io_error, .message = fmt::format("'{}' is a directory", path)};
}

class ReadOnlyFile : public File {
 public:
  Status write(std::int64_t, const Value&) override { return read_only("the file"); }
  Status sync() override { return {}; }
  Status close() override { return {}; }
};

class ReadOnlyFileSystem : public FileSystem {
 public:
  Result<std::unique_ptr<File>> create(std::string_view path) override { return read_only(path); }
  Status rename(std::string_view from, std::string_view) override { return read_only(from); }
  Status remove(std::string_view path) override { return read_only(path); }
  Status make_directory(std::string_view path) override { return read_only(path); }
  Status sync_directory(std::string_view directory) override { return is_there(directory); }
  Status drop_cache(std::string_view path) override { return is_there(path); }
  Result<std::int64_t> free_space() override { return std::int64_t{0}; }

 private:
  Status is_there(std::string_view path) {
    FD_TRY_VOID(stat(path));
    return {};
  }
};

class SnapshotFile final : public ReadOnlyFile {
 public:
  explicit SnapshotFile(const SnapshotNode& node) : node_(node) {}
  Result<Value> read(std::int64_t offset, std::int64_t size) override { return node_.content.read(offset, size); }
  Result<std::int64_t> size() override { return node_.content.size(); }

 private:
  const SnapshotNode& node_;
};

class SnapshotFileSystem final : public ReadOnlyFileSystem {
 public:
  explicit SnapshotFileSystem(std::vector<SnapshotNode> nodes) : nodes_(std::move(nodes)) {
    std::sort(nodes_.begin(), nodes_.end(),
              [](const SnapshotNode& a, const SnapshotNode& b) { return a.path < b.path; });
  }

  Result<std::unique_ptr<File>> open(std::string_view path) override {
    FD_TRY(const SnapshotNode* node, find(path));
    if (node->kind != FileKind::file) return no_file(path);
    return std::unique_ptr<File>(std::make_unique<SnapshotFile>(*node));
  }
  Result<FileInfo> stat(std::string_view path) override {
    FD_TRY(const SnapshotNode* node, find(path));
    return FileInfo{.kind = node->kind, .size = node->content.size(), .modified = node->modified};
  }
  Result<std::vector<std::string>> list(std::string_view directory) override {
    FD_TRY(const SnapshotNode* top, find(directory));
    if (top->kind != FileKind::directory) return no_directory(directory);
    std::vector<std::string> names;
    for (const SnapshotNode& node : nodes_) {
      if (!node.path.empty() && parent_path(node.path) == directory) names.emplace_back(file_name(node.path));
    }
    return names;
  }

 private:
  Result<const SnapshotNode*> find(std::string_view path) const {
    const auto found = std::partition_point(nodes_.begin(), nodes_.end(),
                                            [path](const SnapshotNode& node) { return node.path < path; });
    if (found == nodes_.end() || found->path != path) return nothing_at(path);
    return &*found;
  }

  std::vector<SnapshotNode> nodes_;  // by path
};

}  // namespace

class Disk::LookFile final : public ReadOnlyFile {
 public:
  explicit LookFile(const Content& content) : content_(content) {}
  Result<Value> read(std::int64_t offset, std::int64_t size) override { return content_.read(offset, size); }
  Result<std::int64_t> size() override { return content_.size(); }

 private:
  const Content& content_;
};

class Disk::Look final : public ReadOnlyFileSystem {
 public:
  Look(const Disk& disk, std::size_t view) : disk_(disk), view_(view) {}

  Result<std::unique_ptr<File>> open(std::string_view path) override {
    FD_TRY(const Inode* const inode, find(path));
    if (inode->kind != FileKind::file) return no_file(path);
    return std::unique_ptr<File>(std::make_unique<LookFile>(inode->content[view_]));
  }
  Result<FileInfo> stat(std::string_view path) override {
    FD_TRY(const Inode* const inode, find(path));
    return FileInfo{.kind = inode->kind, .size = inode->content[view_].size(), .modified = inode->modified};
  }
  Result<std::vector<std::string>> list(std::string_view directory) override {
    FD_TRY(const Inode* const inode, find(directory));
    if (inode->kind != FileKind::directory) return no_directory(directory);
    std::vector<std::string> names;
    names.reserve(inode->children[view_].size());
    for (const Child& entry : inode->children[view_]) names.emplace_back(entry.name);
    return names;
  }

 private:
  Result<const Inode*> find(std::string_view path) const {
    const PathTable::Entry* entry = disk_.paths_.find(path);
    if (entry == nullptr || entry->inode[view_] == none) return nothing_at(path);
    return &disk_.at(entry->inode[view_]);
  }

  const Disk& disk_;
  std::size_t view_;
};

std::unique_ptr<FileSystem> Disk::look(View view) const { return std::make_unique<Look>(*this, index(view)); }

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
