// CrashSpace: every content that a power loss may legally leave, under one profile, at every consistent cut of one
// trace. It is a set of cells; a content gives each cell that can be reached one of its values:
//
//   name cell      one (directory, name); value: an inode, or absent
//   size cell      one per file; value: a size
//   content cell   one per file; value: its bytes. It implies the size: whoever assigns contents needs no sizes. Sizes
//                  are for readers that ask for the size first
//
// The cells of a directory's names can be reached if some present name leads to the directory; those of a file
// likewise. A file or directory that a rename without atomicity left under two names is one inode: both names share its
// cells. Two contents that differ only in which inode a name leads to are two contents.
//
// A value is legal through one or more windows (the same bytes may be there because a write had not happened yet, or
// because it was lost). A window is a set of facts that must hold and a set that must not (profile.h). A Partial is a
// set of assigned cells; it is legal if some choice of one window each fits together. Any legal Partial can be
// completed: every unassigned cell always has a legal value left.
//
// Use:
//   explicit  start at root(): assign every name of the directory, the contents of every file met, the names of every
//             directory met ...; assign() says what is legal; each complete assignment is one distinct content
//   lazy      assign a cell when it is first read
//
// Threads: a CrashSpace is immutable once built and may be shared; a Partial belongs to one thread. Nothing in a
// Partial's assign and undo allocates. Errors of build: invalid_input (a trace that contradicts itself, a file with
// more contents than the limit).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "faults/persistence/count.h"
#include "faults/persistence/profile.h"
#include "faults/persistence/trace.h"

namespace firedrill::crash {

using CellId = std::uint32_t;
using ValueIndex = std::uint32_t;  // into Cell::values

enum class CellKind : std::uint8_t { name, size, content };

struct CellValue {
  InodeId inode = no_inode;  // name: where it leads; none: absent
  std::int64_t size = 0;     // size; content: of the bytes
  Value bytes = {};          // content: u8, its digest known; one Value for equal bytes
};

struct Cell {
  CellKind kind = CellKind::name;
  InodeId inode = no_inode;  // name: the directory; else the file
  std::string name = {};     // name
  std::vector<CellValue> values = {};
};

struct SpaceOptions {
  ProfileOptions profile = {};
  // Operations that are in every cut: the crash certainly comes after them. See operations_before_attempt.
  std::vector<OperationId> certain = {};
  // Most distinct contents of one file. The contents of a file with n unsynced writes grow like 6 to the n.
  std::size_t contents_max = 1U << 16U;
};

// What became of an item of one operation in one crash state, in words.
struct Fate {
  OperationId operation = 0;
  std::string what;  // "durable", "lost", "torn at sector 7", "zeros", "new name lost", "in the cut"
};

class SpaceData;  // windows and bits; crash_data.h

class CrashSpace {
 public:
  static Result<std::unique_ptr<CrashSpace>> build(const Trace& trace, const SpaceOptions& options);
  ~CrashSpace();

  const Trace& trace() const;  // a copy of its own
  const SpaceOptions& options() const;

  InodeId root() const { return root_inode; }
  FileKind kind(InodeId inode) const;
  std::size_t inode_count() const;  // inodes are below this
  std::size_t cell_count() const;   // cells are 0 .. this - 1
  const Cell& cell(CellId cell) const;
  // The name cells of a directory, sorted bytewise by name: every name that any legal content can have there.
  std::span<const CellId> names(InodeId directory) const;
  std::optional<CellId> name_cell(InodeId directory, std::string_view name) const;
  CellId size_cell(InodeId file) const;
  CellId content_cell(InodeId file) const;

  // Acknowledgements and commits of the trace, in the recorded order.
  std::span<const OperationId> acknowledgements() const;
  std::span<const OperationId> commits() const;

  // "manifests/4-1-1 leads to the file made by rank 2's create of tmp/4-1-1", "shards/4-1-1/a: torn at sector 7"
  std::string describe(CellId cell, ValueIndex value) const;

  const SpaceData& data() const { return *data_; }

 private:
  explicit CrashSpace(std::unique_ptr<SpaceData> data);
  std::unique_ptr<SpaceData> data_;
};

class Partial {
 public:
  explicit Partial(const CrashSpace& space);
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;
  ~Partial();

  const CrashSpace& space() const { return space_; }

  // Assigns a cell that has no value yet. False: no legal content has these values together; nothing changed then.
  bool assign(CellId cell, ValueIndex value);
  // Takes the last assignment back.
  void undo();
  // Takes all assignments back that were made after there were `depth`.
  void undo_to(std::size_t depth) {
    while (depth_ > depth) undo();
  }
  // Whether assign would succeed.
  bool feasible(CellId cell, ValueIndex value);

  std::size_t depth() const { return depth_; }
  std::optional<ValueIndex> value(CellId cell) const {
    const std::int32_t value = values_[cell];
    return value < 0 ? std::nullopt : std::optional<ValueIndex>(static_cast<ValueIndex>(value));
  }
  // The i-th assignment.
  std::pair<CellId, ValueIndex> assignment(std::size_t i) const;

  // Some legal content with these values is left by a crash whose cut holds the operation.
  bool may_contain(OperationId operation);
  // The strictest requirement on whatever has these values: the newest acknowledged checkpoint whose acknowledgement
  // may be in the cut. None: nothing acknowledged in this trace need be found (what the base already held is the
  // caller's).
  std::optional<CheckpointId> requirement();
  // The newest committed checkpoint whose commit may be in the cut.
  std::optional<CheckpointId> newest_committed();

  // The fewest operations, in the recorded order, after which a crash may leave these values.
  std::vector<OperationId> shortest_cut();
  // What became of each operation of that cut.
  std::vector<Fate> picture();

 private:
  bool fits(const std::uint64_t* must, const std::uint64_t* must_not, std::uint32_t window) const;
  void put(std::size_t level, std::uint32_t window, bool sure);
  void push(CellId cell, ValueIndex value, std::uint32_t window, bool sure);
  bool search(std::size_t n);
  void start_trial();
  bool extend_trial(std::size_t n, std::uint32_t window);
  void settle();
  void rebuild();

  const CrashSpace& space_;
  const SpaceData& data_;
  std::size_t words_;
  std::size_t depth_ = 0;
  std::vector<std::int32_t> values_;   // by cell
  std::vector<CellId> cells_;          // by level
  std::vector<std::uint32_t> chosen_;  // by level: a window; together they fit
  std::vector<std::uint32_t> open_;    // levels whose value has more than one window
  std::vector<std::uint64_t> must_;    // rows by level: what must hold below it
  std::vector<std::uint64_t> must_not_;
  std::vector<std::uint64_t> sure_must_;  // the same of levels that are not open
  std::vector<std::uint64_t> sure_must_not_;
  std::vector<std::uint32_t> trial_;  // of the search, by open level
  std::vector<std::uint64_t> trial_must_;
  std::vector<std::uint64_t> trial_must_not_;
};

// The exact number of distinct legal contents that agree with a Partial (an empty one: of all). It branches on a cell,
// splits what is left into parts that cannot influence each other, multiplies, and remembers parts it has seen. Shares
// nothing with the engines but the space.
// Keeps what it remembers: for many partials of one space use one Counter (counter.h).
Count count(const CrashSpace& space);
Count count(const Partial& partial);

}  // namespace firedrill::crash
