// Overlay: a disk that holds a DiskContent and, above it, what is written while that content is looked at: a recovery
// makes marks and records. Nothing reaches the content, and all that was written is forgotten when the next content
// comes. Made to be used again hundred thousand times: paths are known by number, nodes and buffers are kept.
//
// Semantics are those of seam/file_system.h; syncs succeed and do nothing. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/seam/file_system.h"
#include "engine/sim/content.h"
#include "harness/explore/disk_content.h"

namespace firedrill {

struct OverlayOptions {
  bool keep_digests = true;  // false: what is read has to be hashed again by its reader, as on a real disk
};

class Overlay {
 public:
  using Node = DiskContent::Node;

  explicit Overlay(const OverlayOptions& options = {}) : options_(options) {}
  ~Overlay();
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  // From now on this content, untouched. It must outlive its use. Open files must not be used any more.
  void look_at(DiskContent& content);
  // The disk as one rank sees it; all ranks see the same. The overlay must outlive it.
  std::unique_ptr<FileSystem> files();

 private:
  class Files;
  class OverlayFile;

  struct PathEntry {
    std::string text;
    PathEntry* parent = nullptr;  // none: the root
    std::uint32_t epoch = 0;      // in which `node` was found
    Node node = DiskContent::absent;
    std::string_view name;  // the last part of `text`
    std::uint64_t hash = 0;
  };
  struct Change {
    Node directory = DiskContent::absent;
    std::string name;
    Node node = DiskContent::absent;  // absent: removed
  };
  struct Made {
    FileKind kind = FileKind::file;
    sim::Content bytes;
  };

  static constexpr Node first_made = DiskContent::node_max + 1;
  static bool made(Node node) { return node >= first_made; }
  Made& made_at(Node node) { return made_[node - first_made]; }

  PathEntry& entry(std::string_view path);
  PathEntry& add_entry(std::string_view path, std::uint64_t hash);
  void take_slot(std::uint64_t hash, std::size_t entry);
  Node find(std::string_view path) { return resolve(entry(path)); }
  Node resolve(PathEntry& path);
  Node child(Node directory, std::string_view name);
  void set_child(PathEntry& path, Node directory, Node node);
  Node make(FileKind kind);
  FileKind kind(Node node) { return made(node) ? made_at(node).kind : content_->kind(node); }
  std::int64_t size(Node node) { return made(node) ? made_at(node).bytes.size() : content_->size(node); }
  Value read(Node node, std::int64_t offset, std::int64_t size);
  std::vector<std::string> list(Node directory);
  // The directory that holds the entry, or why there is none.
  Result<Node> holder(PathEntry& path);

  OverlayOptions options_;
  DiskContent* content_ = nullptr;
  std::uint32_t epoch_ = 0;
  std::deque<PathEntry> entries_;
  std::vector<std::uint32_t> slots_;  // by hash, open addressing: 1 + the number of the entry; 0 is free
  std::vector<void*> spare_;          // memory of files that were closed
  std::vector<Change> changes_;
  std::size_t changes_used_ = 0;
  std::vector<Made> made_;
  std::size_t made_used_ = 0;
};

}  // namespace firedrill
