// Recorder: turns what the ranks of a run do into a Trace. One per world; the decorators in recording.h feed it. It
// keeps, for each program, which operations of all programs happened before its next one (a vector clock over the kept
// operations), so a message costs one shared pointer and leaves no line in the trace.
//
// Inodes: the recorder follows the names as all see them, from the base it was given on; a file that is created gets a
// new inode, a file that is opened has the inode its path leads to at that time.
//
// Threads: any; one lock. In the sim world the order of operations is that of the scheduler, hence repeatable.
// What it does not do: tell an operation that failed half-way from one that did nothing (see Trace), follow programs of
// other processes.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>

#include "engine/seam/transport.h"
#include "engine/seam/unsynced.h"
#include "faults/persistence/trace.h"

namespace firedrill::crash {

class Recorder {
 public:
  using Clock = std::vector<std::uint32_t>;  // by program: how many of its operations happened before
  using Stamp = std::shared_ptr<const Clock>;

  explicit Recorder(std::vector<BaseEntry> base);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // All operations so far happen before everything that programs of this attempt do.
  void attempt_started(int attempt);
  // The storage's own number of its last operation (sim::Disk::operations), by which it names unsynced items. Must be
  // given before the first operation of a run in which nodes die.
  void number_by(std::function<std::uint64_t()> number) { number_ = std::move(number); }
  // The node lost its caches. `lost`: those of its unsynced items that are gone; its others are durable.
  void node_died(int node, std::span<const UnsyncedItem> lost);

  // The trace so far. In full when no program runs.
  Trace trace() const;
  std::size_t operations() const;

  // What the decorators call.
  ProgramId program(const Program& program);
  OperationId record(ProgramId program, const Position& position, Operation operation);
  Stamp stamp(ProgramId program);                     // what happened before its next operation
  void learn(ProgramId program, const Stamp& stamp);  // that, too, happens before its next operation
  void send(int attempt, int from, int to, Tag tag, ProgramId program);
  void take(int attempt, int from, int to, Tag tag, ProgramId program);
  InodeId inode_of(std::string_view path) const;  // none: no such path

 private:
  struct Known {
    Clock clock;  // by program; may be shorter than there are programs
    Clock told;   // what the last recorded operation already says
    Stamp stamp;  // of `clock`, until it changes
  };
  using Wire = std::tuple<int, int, int, Tag>;

  ProgramId enter(const Program& program);
  OperationId append(ProgramId program, Operation operation);
  void grow(Clock& clock) const;
  void apply(Operation& operation);
  InodeId find(std::string_view path) const;
  void move_names(const std::string& from, const std::string& to);
  Stamp stamp_of(ProgramId program);
  void join(ProgramId program, const Stamp& stamp);
  LostItem find_item(const UnsyncedItem& item) const;
  void see_what_is_left();

  mutable std::mutex mutex_;
  std::function<std::uint64_t()> number_;
  Trace trace_;
  std::vector<std::uint64_t> numbers_;  // by operation
  std::map<std::string, InodeId, std::less<>> names_;
  InodeId next_inode_ = root_inode + 1;
  std::vector<Known> known_;                                 // by program
  std::vector<std::vector<OperationId>> operations_of_;      // by program
  std::map<std::tuple<int, int, int>, ProgramId> programs_;  // by attempt, rank, task
  Clock start_;                                              // of new programs
  std::map<Wire, std::deque<Stamp>> wires_;
};

}  // namespace firedrill::crash
