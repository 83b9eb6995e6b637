// Disk: one parallel file system in memory, seen by all nodes. It keeps two versions of every directory entry and of
// every file's content: what all see now, and what is durable; between them lie the unsynced changes, each owned by the
// node that issued it. What a death leaves of them decides a chooser (seam/unsynced.h); the disk only obeys.
//
// Semantics are those of seam/file_system.h. A sync makes durable what the node that asks for it has issued: of a file
// its unsynced writes, of a directory its entry changes, with what others had changed about the same entries before.
// What other nodes issued stays in their caches until they sync it themselves. A failed operation has no effect.
//
// For each of two views a digest is kept up to date at O(1) per operation: of all paths with their kinds and contents
// (contents by their Values' digests; see content.h). Equal digests mean equal views, so answers about a view can be
// looked up. Modification times are in neither: nothing may decide by them.
//
// Threads: one. Errors: as in the seam. What it does not do: rename a directory into another parent (io_error),
// permissions, links.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/seam/file_system.h"
#include "engine/seam/unsynced.h"
#include "engine/sim/content.h"
#include "engine/sim/path_table.h"

namespace firedrill::sim {

enum class View : std::uint8_t {
  processes_die,  // what all see now: caches survive
  power_fails,    // durable names with durable contents only
};

// On whose behalf an operation is done.
struct Issuer {
  int node = 0;
  int rank = -1;
  int attempt = 0;
};

// An operation that changed the disk (or made it durable) and succeeded.
struct DiskChange {
  FileOp op = FileOp::create;
  std::string_view path;
  std::string_view second;  // rename: the new name
  std::int64_t bytes = 0;   // write: how many
  Issuer issuer;
};

// One operation of the log: enough to do it again on another disk.
struct DiskRecord {
  FileOp op = FileOp::create;
  std::string path;
  std::string second;
  std::uint32_t file = 0;   // write, sync, create: the inode
  std::int64_t offset = 0;  // write
  Value bytes;              // write
  Issuer issuer;
};

struct DiskOptions {
  std::int64_t capacity = std::int64_t{1} << 40;  // bytes of named files
  bool log = false;                               // keep DiskRecords
  // What lies below `dependent`/NAME has `witness`/NAME for its witness: without that it means nothing to whoever looks
  // at the disk.
  std::string_view dependent = {};
  std::string_view witness = {};
  // What lies below it means nothing at all: nobody but whoever has put it there looks at it.
  std::string_view unread = {};
};

// Asked before each operation of a file system made by Disk::files: the place to spend time, and to refuse.
class DiskGate {
 public:
  virtual ~DiskGate() = default;
  virtual Status pass(FileOp op, std::int64_t bytes) = 0;
};

class Disk {
 public:
  using InodeId = std::uint32_t;

  Disk() { reset({}); }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // Empty again. All memory is kept; files that are still open must not be used.
  void reset(const DiskOptions& options);

  // The seam. The gate, if there is one, and the disk must outlive it. Cheap.
  std::unique_ptr<FileSystem> files(const Issuer& issuer, DiskGate* gate = nullptr);

  // Called after every operation that changes the disk. The texts are valid during the call.
  std::function<void(const DiskChange&)> on_change;

  // The time as a node's clock shows it, for modification times; empty: always 0.
  std::function<Time(int node)> clock;

  Digest digest(View view) const { return view_digest_[index(view)]; }
  // The same without what means nothing at this moment; see DiskOptions.
  Digest digest_of_witnessed(View view) const {
    Digest digest = view_digest_[index(view)];
    take_from(digest, unwitnessed_[index(view)]);
    return digest;
  }
  // Of one witness, with its name, and of all that has it for its witness; nothing: it is not there, or the options
  // name no witnesses.
  std::optional<Digest> digest_with_dependents(View view, std::string_view witness) const;
  // digest_of_witnessed, but each witness that is there, with what depends on it, counts as what `class_of` says of its
  // digest_with_dependents: views that differ in contents of one class alone have the same digest.
  Digest digest_by_class(View view, const std::function<Digest(const Digest&)>& class_of) const;
  // Of all that lies below a directory, as it counts in digest(); 0: nothing does.
  Digest digest_below(View view, std::string_view directory) const;
  // Of what has this path for its witness, whether that is there or not.
  Digest sum_of_dependents(View view, std::string_view witness) const;
  // An independent copy of a view, contents shared; writing operations fail with io_error.
  std::unique_ptr<FileSystem> snapshot(View view) const;
  // The same without a copy: what it shows is the view at the moment of each call. The disk must outlive it.
  std::unique_ptr<FileSystem> look(View view) const;

  // The node died: each of its unsynced items is lost or becomes durable. Returns how many were lost.
  struct Lost {
    int data = 0;
    int names = 0;
  };
  Lost lose_unsynced(int node, const UnsyncedChooser& lost);
  // A sync of the node failed: what it had not synced in the file, or among the names of the directory, never becomes
  // durable, whatever is synced later, and is lost when the node dies. Until then all see it. No such path: nothing.
  void forget_unsynced(FileOp sync, std::string_view path, int node);
  // Puts bytes in place, durable at once, as damage does. Errors: not_found; internal (beyond the file's size).
  Status overwrite(std::string_view path, std::int64_t offset, const Value& bytes);
  // All unsynced items of all nodes, in the order of issue. The paths are valid until the next reset.
  std::vector<UnsyncedItem> unsynced();

  const std::vector<DiskRecord>& log() const { return log_; }
  std::int64_t free_space() const { return options_.capacity - used_; }
  std::uint64_t operations() const { return operations_; }

  // Grows with every reset: what was opened under another one is gone.
  std::uint64_t generation() const { return generation_; }

  // The operations behind the seam, without a gate. `path` names the file for observers and lasts.
  struct OpenFile {
    InodeId inode;
    std::string_view path;  // lasts until the next reset
  };
  Result<OpenFile> create(std::string_view path, const Issuer& issuer);
  Result<OpenFile> open(std::string_view path);
  void release(InodeId file);  // of a create or an open
  Status write(InodeId file, std::int64_t offset, const Value& bytes, std::string_view path, const Issuer& issuer);
  Value read(InodeId file, std::int64_t offset, std::int64_t size) const;
  std::int64_t size(InodeId file) const;
  void sync(InodeId file, std::string_view path, const Issuer& issuer);
  Result<FileInfo> stat(std::string_view path) const;
  Result<std::vector<std::string>> list(std::string_view directory) const;
  Status rename(std::string_view from, std::string_view to, const Issuer& issuer);
  Status remove(std::string_view path, const Issuer& issuer);
  Status make_directory(std::string_view path, const Issuer& issuer);
  Status sync_directory(std::string_view directory, const Issuer& issuer);

 private:
  class LookFile;
  class Look;

  static constexpr InodeId none = 0;
  static constexpr InodeId root = 1;
  static constexpr std::size_t live = 0;
  static constexpr std::size_t durable = 1;

  struct Child {
    std::string_view name;  // in the path table
    InodeId inode;
  };
  struct PendingWrite {
    std::int64_t offset;
    Value bytes;
    int node;
    std::uint64_t operation;
    bool lost = false;
    bool forgotten = false;  // see forget_unsynced
  };
  static bool overlap(const PendingWrite& a, const PendingWrite& b) {
    return a.offset < b.offset + static_cast<std::int64_t>(b.bytes.size()) &&
           b.offset < a.offset + static_cast<std::int64_t>(a.bytes.size());
  }
  struct PendingName {
    PathId path;    // as it was named
    InodeId inode;  // none: removed
    int node;
    std::uint64_t operation;
    bool lost = false;
    bool forgotten = false;
  };
  struct Inode {
    FileKind kind = FileKind::file;
    Time modified{0};
    int references = 0;            // entries, unsynced entry changes, open files
    Content content[2];            // by view
    std::vector<PathId> paths[2];  // where it can be reached
    std::vector<PendingWrite> pending_writes;
    std::vector<Child> children[2];  // by name
    std::vector<PendingName> pending_names;
    void clear();
  };

  static std::size_t index(View view) { return static_cast<std::size_t>(view); }
  Inode& at(InodeId id) { return inodes_[id]; }
  const Inode& at(InodeId id) const { return inodes_[id]; }
  InodeId new_inode(FileKind kind);
  void refer(InodeId id) { ++at(id).references; }
  void unrefer(InodeId id);

  InodeId find(std::string_view path) const;
  // Where an entry stands: the directory that holds it, and its path, whose last part is its name.
  struct Spot {
    InodeId directory = none;
    PathId path = 0;
  };
  Result<Spot> spot_for(std::string_view path);
  std::string_view name_of(PathId path) const { return file_name(paths_[path].text); }
  static std::vector<Child>::iterator find_child(std::vector<Child>& children, std::string_view name);
  InodeId child(std::size_t view, InodeId directory, std::string_view name);
  // Sets or (none) removes an entry in one view, with all that can be reached through it.
  void set_child(std::size_t view, const Spot& spot, InodeId inode);
  void touch(InodeId inode, int node) {
    if (clock) at(inode).modified = clock(node);
  }
  // An entry changes for all to see; durable with the directory's next sync.
  void change_name(const Spot& spot, InodeId inode, const Issuer& issuer);
  // The path of an entry in the directory; `guess` if it is that.
  PathId path_in(PathId directory, std::string_view name, PathId guess = PathTable::root);
  void reach(std::size_t view, InodeId inode, PathId path);
  void unreach(std::size_t view, InodeId inode, PathId path);
  // Takes the file out of a view's digest before its content changes, and puts it back after.
  void count_content(std::size_t view, InodeId inode, bool add);
  struct Dependents {
    PathId witness;
    Digest sum[2];  // of their terms, by view
  };
  Dependents& dependents_of(PathId witness);
  const Dependents* dependents_of(const PathTable::Entry& witness) const;
  Digest digest_of_dependents(std::size_t view, const Dependents& dependents) const;
  void add_to_dependents(std::size_t view, PathId witness, const Digest& part);
  void take_from_dependents(std::size_t view, PathId witness, const Digest& part);
  // A witness comes or goes: what depends on it means something from now on, or no longer.
  void note_witness(std::size_t view, PathId path, bool is_there);
  Digest term(std::size_t view, InodeId inode, PathId path) const;
  void add_terms_below(std::size_t view, const PathTable::Entry& directory, Digest& sum) const;
  void note_change(const DiskChange& change, InodeId file = none, std::int64_t offset = 0, const Value& bytes = {});

  // An unsynced item in place; disk_loss.cpp.
  struct Pending {
    std::uint64_t operation;
    InodeId inode;
    std::size_t index;
    bool is_name;
    bool removal;
  };
  std::vector<Pending> pending_in_order() const;
  UnsyncedItem describe_item(const Pending& pending);
  void sync_writes(InodeId file, int node);
  void sync_names(InodeId directory, int node);
  void settle_lost_writes(InodeId file, int node);
  void settle_lost_names(InodeId directory, int node);

  DiskOptions options_;
  std::deque<Inode> inodes_;
  std::size_t inode_count_ = 0;
  PathTable paths_;
  Digest view_digest_[2];
  Digest unwitnessed_[2];  // the sum of the terms of what has no witness
  std::vector<Dependents> dependents_;
  std::int64_t used_ = 0;
  std::uint64_t operations_ = 0;
  std::uint64_t generation_ = 0;
  std::string scratch_;
  std::vector<DiskRecord> log_;
};

}  // namespace firedrill::sim
