// Structure: a trace seen from the disk. Which versions each name, each file size and each range of a file went through
// and by which operation, and which syncs each file and directory saw. It is the ground on which a profile's rules
// stand (facts.h) and knows of no profile itself.
//
// What a node's death took stays in the list, marked; what all see behind it is the newest version that is not lost.
// Versions of one name (or of one file's size) are in the order in which they were made, which happens-before agrees
// with; version 0 is what the trace began with.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "faults/persistence/trace.h"

namespace firedrill::crash {

// A version of one name.
struct NameVersion {
  std::optional<OperationId> operation = {};  // none: version 0
  InodeId inode = no_inode;                   // none: absent
  bool second = false;                        // of a rename: the new name
  std::optional<OperationId> lost_by = {};    // the node's death that took it
};

struct NameCell {
  InodeId directory = root_inode;
  std::string name;
  std::vector<NameVersion> versions;

  InodeId seen() const;  // by all, at the end of the list
};

// The two names of a rename: cell and version of each.
struct Twins {
  OperationId operation = 0;
  std::uint32_t from_cell = 0;
  std::uint32_t from_version = 0;
  std::uint32_t to_cell = 0;
  std::uint32_t to_version = 0;
};

struct SizeVersion {
  std::optional<OperationId> operation = {};
  std::int64_t size = 0;
  bool failed = false;
  std::optional<OperationId> lost_by = {};
  bool carried = false;  // what a failed write before had left: no promise of `operation`
};

struct WriteItem {
  OperationId operation = 0;
  InodeId file = no_inode;
  std::int64_t offset = 0;
  Value bytes;  // u8
  bool failed = false;
  std::optional<OperationId> lost_by = {};

  std::int64_t end() const { return offset + static_cast<std::int64_t>(bytes.size()); }
};

struct Sync {
  OperationId operation = 0;
  bool failed = false;
  bool is_close = false;  // of a file
};

struct FileHistory {
  Value base;  // u8; what version 0 holds
  std::vector<std::uint32_t> writes;
  std::vector<SizeVersion> sizes;
  std::vector<Sync> syncs;

  std::int64_t size_seen() const;
  std::int64_t size_kept() const;  // as seen if no failed write had left anything
};

struct DirectoryHistory {
  std::map<std::string, std::uint32_t, std::less<>> cells;
  std::vector<Sync> syncs;
};

// An item that was not synced and that its node's death left durable.
struct Spared {
  OperationId death = 0;
  bool is_name = false;       // else a write and its size
  std::uint32_t index = 0;    // of the cell, or of the write
  std::uint32_t version = 0;  // of the name
};

class Structure {
 public:
  // Errors: invalid_input (an operation on what is not there).
  static Result<Structure> of(const Trace& trace);

  const Trace& trace() const { return *trace_; }
  const HappensBefore& order() const { return order_; }
  int node_of(OperationId operation) const { return trace_->programs[trace_->operations[operation].program].node; }

  std::vector<NameCell> names;
  std::vector<WriteItem> writes;
  std::map<InodeId, FileHistory> files;
  std::map<InodeId, DirectoryHistory> directories;
  std::vector<Twins> renames;
  std::vector<Spared> spared;
  std::map<InodeId, std::string> paths;  // the first path of each inode, for people

 private:
  explicit Structure(const Trace& trace) : trace_(&trace), order_(trace) {}

  struct Spot {
    std::uint32_t cell;
    InodeId inode;  // that is there now
  };
  Status begin();
  Status apply(OperationId id);
  Status apply_to_names(OperationId id);
  void apply_write(OperationId id);
  Result<InodeId> directory_at(std::string_view path) const;
  Result<Spot> spot(OperationId id, std::string_view path);
  std::uint32_t add_version(std::uint32_t cell, const NameVersion& version);
  void node_died(OperationId id);
  void lose_names(OperationId id, const std::set<std::pair<OperationId, bool>>& lost);
  void lose_writes(OperationId id, const std::set<std::pair<OperationId, bool>>& lost);

  const Trace* trace_;
  HappensBefore order_;
};

// Whether a sync promises an item that `item` made: it succeeded behind it, and none of `syncs` failed possibly
// between.
bool promised(const HappensBefore& order, OperationId item, const Sync& sync, std::span<const Sync> syncs);
// Those of `syncs` that the node called.
std::vector<Sync> syncs_of_node(const Structure& structure, std::span<const Sync> syncs, int node);

}  // namespace firedrill::crash
