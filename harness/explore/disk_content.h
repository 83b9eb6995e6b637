// DiskContent: one content of a disk, to be read: what a power loss has left. Directories and files are nodes; a node
// is found by its name in a directory. An implementation may decide what it holds only when it is asked (lazily), but
// asked twice it says the same, until it is told to become another content.
//
// Threads: one. Errors: none; asking for what is not there is a mistake of the caller.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/value.h"
#include "engine/seam/file_system.h"

namespace firedrill {

class DiskContent {
 public:
  using Node = std::uint32_t;
  static constexpr Node absent = 0;
  static constexpr Node root = 1;
  // Greater numbers are the overlay's own.
  static constexpr Node node_max = (Node{1} << 31) - 1;

  virtual ~DiskContent() = default;
  virtual Node child(Node directory, std::string_view name) = 0;
  // In any order.
  virtual void list(Node directory, std::vector<std::string>& names) = 0;
  virtual FileKind kind(Node node) = 0;
  virtual std::int64_t size(Node file) = 0;
  // At most `size` bytes, fewer at the end. The same range gives the same Value, with its digest known, as long as the
  // file holds the same.
  virtual Value read(Node file, std::int64_t offset, std::int64_t size) = 0;
};

// A content that is what it is: a copy of all that a file system holds.
class FixedContent final : public DiskContent {
 public:
  FixedContent();
  // Errors: as the file system's.
  static Result<FixedContent> copy_of(FileSystem& files);

  Node child(Node directory, std::string_view name) override;
  void list(Node directory, std::vector<std::string>& names) override;
  FileKind kind(Node node) override { return at(node).kind; }
  std::int64_t size(Node file) override { return static_cast<std::int64_t>(at(file).bytes.size()); }
  Value read(Node file, std::int64_t offset, std::int64_t size) override;

  // Enters a name; a file with its bytes.
  Node add(Node directory, std::string_view name, FileKind kind, const Value& bytes = {});

 private:
  struct Entry {
    FileKind kind = FileKind::directory;
    std::map<std::string, Node, std::less<>> names;
    Value bytes;
    std::map<std::pair<std::int64_t, std::int64_t>, Value> parts;  // that were read
  };
  Entry& at(Node node) { return nodes_[node - root]; }
  Status copy(FileSystem& files, const std::string& path, Node into);

  std::vector<Entry> nodes_;
};

}  // namespace firedrill
