// Trace: what a run did to the disk, in a form from which every legal crash state can be derived: what was durable
// before it began, the programs that ran, their operations in the order in which they took effect, and which operation
// happened before which. A trace file (`schema: firedrill.trace/1`, JSON lines) holds the same; see trace_file.h.
//
// A program is one thread of control: (attempt, rank, task). Its operations happen one after another. Edges between
// programs are in `after`: the recorder derives them from messages, from tasks started and waited for, and from the
// rule that attempt n+1 starts only when every process of attempt n is gone. Messages themselves are not kept: they
// matter only through the edges.
//
// Only operations that change the disk or promise something are kept (see is_kept). Failed ones are kept where the
// failure tells something: a write that failed may have left anything of its range, a sync that failed promises
// nothing.
//
// The words come from the theory of distributed snapshots (Chandy and Lamport 1985; Mattern 1989): happens-before is a
// partial order, a cut is a set of operations that holds with each one all that happened before it, and a crash happens
// at some cut.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/error.h"
#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/seam/checkpoint_id.h"
#include "engine/seam/file_system.h"
#include "engine/seam/position.h"

namespace firedrill::crash {

using OperationId = std::uint32_t;  // index into Trace::operations
using ProgramId = std::uint32_t;    // index into Trace::programs
using InodeId = std::uint32_t;      // a file or a directory, under whatever names; never used twice in a trace
inline constexpr InodeId no_inode = 0;
inline constexpr InodeId root_inode = 1;

struct Program {
  int attempt = 0;
  int rank = 0;  // -1: the supervisor, or the world
  int node = 0;
  int task = 0;  // 0: the rank's main task

  bool operator==(const Program&) const = default;
};

enum class OperationKind : std::uint8_t {
  file,          // an operation of the file system seam: `op` says which
  acknowledged,  // success of `checkpoint` was reported to the job
  committed,     // the engine says that `checkpoint` is committed; for reports only
  node_died,     // `node` lost its caches; `lost` says which of its unsynced items are gone, the others are durable
};

std::string_view to_string(OperationKind kind);
std::optional<OperationKind> operation_kind_from(std::string_view name);

// One item that a node's death took: what a write wrote, or one name that an operation changed.
struct LostItem {
  OperationId operation = 0;
  bool second = false;  // of a rename: the new name

  bool operator==(const LostItem&) const = default;
};

struct Operation {
  OperationKind kind = OperationKind::file;
  ProgramId program = 0;
  std::int64_t step = 0;
  Phase phase = Phase::none;
  // Operations of other programs that happened before this one; what follows from others' may be left out.
  std::vector<OperationId> after = {};

  // file
  FileOp op = FileOp::create;
  std::string path = {};           // write, sync, close: the name under which the file was created or opened
  std::string second = {};         // rename: the new name
  InodeId inode = no_inode;        // what was made, written, synced, closed, renamed or removed; else none
  std::int64_t offset = 0;         // write
  Value bytes = {};                // write
  std::optional<Code> error = {};  // how it failed; none: it kept what it promises

  // acknowledged, committed
  CheckpointId checkpoint = {};
  Digest state = {};  // acknowledged: state digest saved

  // node_died
  int node = -1;
  std::vector<LostItem> lost = {};
};

// Something that was durable when the trace began. Parents come before their children; the root is not listed.
struct BaseEntry {
  std::string path;
  FileKind kind = FileKind::file;
  InodeId inode = no_inode;
  Value bytes = {};  // of a file
};

struct Trace {
  std::string owner = {};  // a key of the run that it was recorded of, if it is kept; may be empty
  std::vector<BaseEntry> base;
  std::vector<Program> programs;
  // In the order in which they took effect, which is one of the orders that happens-before allows.
  std::vector<Operation> operations;
};

// Operations of the seam that are recorded.
bool is_kept(FileOp op);

// All that a file system holds, as a base with inodes counted from root_inode + 1. Errors: of the file system.
Result<std::vector<BaseEntry>> read_base(FileSystem& files);

// All operations of attempts before `attempt`: for a crash that certainly comes after them.
std::vector<OperationId> operations_before_attempt(const Trace& trace, int attempt);

// "rank 2's rename of tmp/4-1-1 to manifests/4-1-1"
std::string describe(const Trace& trace, OperationId operation);

// The order closed under transitivity: one row of bits per operation. It holds the order of each program, the edges in
// `after`, and what the names and files tell: operations that change the same name, or write the same file, happened in
// the recorded order, and so did the making of a directory or file and what was done in it.
class HappensBefore {
 public:
  explicit HappensBefore(const Trace& trace);

  // `first` happened before `second`; false if they are the same.
  bool before(OperationId first, OperationId second) const {
    return (rows_[second * words_ + first / 64] >> (first % 64)) & 1U;
  }
  // Bit i: operation i happened before `operation`.
  std::span<const std::uint64_t> past(OperationId operation) const {
    return {rows_.data() + operation * words_, words_};
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::size_t words_;
  std::vector<std::uint64_t> rows_;
};

}  // namespace firedrill::crash
