// Machine: the sim world's hardware, shared by all attempts of one run: scheduler, clock and disk. An Attempt gives
// each of its ranks the seams FileSystem, Transport, Store, Clock and Host; compute, collectives and decorators are put
// around them by the composition root.
//
//   FiberPool pool;                       // outlives many trials
//   Machine machine(pool);
//   machine.reset({.schedule = {.seed = 7}});
//   Attempt& attempt = machine.start_attempt({.number = 1, .node_of_rank = {0, 0, 1, 1}});
//   for (int rank = 0; rank < 4; ++rank) attempt.start(rank, [&, rank] { rank_main(attempt.seams(rank)); });
//   Status ended = attempt.run();
//
// Dying: from a kill on, every seam call of the rank returns `dead` at once: no effect, no event, no yield; its blocked
// tasks are woken to die. Its peers' waits end with `aborted` after CostTable::failure_detection. When a rank's main
// has ended, its other tasks die in the same way, and a peer that waits for a message of it is told `aborted` after
// that time too.
//
// Several attempts may be alive at once (an old one behind a fence); messages and store are an attempt's own, the disk
// is shared. Everything is reused by the next reset.
//
// Threads: one machine, one thread. Errors: in the seams as these say; run() returns `timeout` for a deadlock (all that
// is left waits without end) or when the limit passed, names who waits for what, and kills what is left.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/seam/clock.h"
#include "engine/seam/compute.h"
#include "engine/seam/file_system.h"
#include "engine/seam/host.h"
#include "engine/seam/store.h"
#include "engine/seam/transport.h"
#include "engine/sim/cost_table.h"
#include "engine/sim/disk.h"
#include "engine/sim/scheduler.h"

namespace firedrill::sim {

struct MachineOptions {
  Schedule schedule;
  CostTable costs;
  DiskOptions disk;
};

// What is wrong with a link.
struct LinkFault {
  bool cut = false;    // messages are lost
  Duration slower{0};  // they take longer
  int lose_every = 0;  // every n-th is lost on its way, and comes when it was sent again,
  Duration again{0};   // so much later
  Time until = never;
  std::int64_t sent = 0;  // so far
};

struct AttemptOptions {
  int number = 1;
  std::vector<int> node_of_rank;  // its size is the world size
};

// What one rank works with.
struct Seams {
  FileSystem& files;
  Transport& transport;
  Store& store;
  Clock& clock;
  Host& host;
};

enum class RankEnd : std::uint8_t {
  running,   // or not started
  finished,  // its main returned
  died,      // killed
  threw,     // an exception left its main or one of its tasks: a finding
};

class Machine;
class SimRank;   // rank.h
class SimStore;  // store.h

class Attempt {
 public:
  explicit Attempt(Machine& machine);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  int number() const { return number_; }
  int world_size() const { return static_cast<int>(ranks_in_use_); }
  Machine& machine() { return machine_; }
  Seams seams(int rank);
  SimRank& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  // The main starts to run at machine.now(), with the next run().
  void start(int rank, std::function<void()> rank_main);
  // Until every started rank of this attempt has ended; fibers of other attempts run along. Only from outside of ranks.
  Status run(Time limit = never);

  // The same up to `moment`, which may lie at the end of all things: for a caller who looks after the ranks from time
  // to time. Nothing is killed. `limit`: ranks are left, and it is `moment`; `stuck`: all that is left waits without
  // end.
  RunStop run_until(Time moment);
  bool ended() const { return tasks_alive_ == 0; }
  std::string describe_waiting() const;

  // These may be called from anywhere, also by the rank itself.
  void kill_rank(int rank);
  void kill_node(int node);         // its ranks; what becomes of unsynced changes is said by Disk::lose_unsynced
  void abort(const Error& reason);  // all waits of all ranks end now, but those of ranks that are stopped or stuck
  void fence();                     // all later calls of all ranks return `fenced`, waits included

  // Kills what is left and lets it unwind. From outside of ranks.
  void kill_started();

  RankEnd end_of(int rank) const;
  const std::string& thrown_by(int rank) const;  // what() of the exception
  // From now on for what `from` sends to `to`. A later one for the same link replaces it.
  void disturb_link(int from, int to, const LinkFault& fault);
  // Of the link; nullptr: it works well.
  LinkFault* link(int from, int to);
  // Whether a rank takes a message that was sent in another attempt; absent: it never does.
  std::function<bool(int sent_in)> takes_message_of;

  // Called on the fiber of a rank's main when it has ended, by whatever way.
  std::function<void(int rank)> on_rank_end;
  // Called for each message that a rank takes, with its sender and the attempt in which that sent it.
  std::function<void(int rank, int peer, int sent_in)> on_message;

 private:
  friend class Machine;
  friend class SimRank;
  void reset(const AttemptOptions& options);

  Machine& machine_;
  int number_ = 0;
  std::size_t ranks_in_use_ = 0;
  std::vector<std::unique_ptr<SimRank>> ranks_;
  std::unique_ptr<SimStore> store_;
  int tasks_alive_ = 0;
  std::map<std::pair<int, int>, LinkFault> links_;  // by (from, to)
};

class Machine {
 public:
  explicit Machine(FiberPool& pool);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // A fresh machine at time 0 with an empty disk (its on_change stays). What was left of older attempts is killed.
  void reset(const MachineOptions& options);
  // Valid until the next reset.
  Attempt& start_attempt(const AttemptOptions& options);
  // The message comes to the rank when the next attempt begins, as one of the attempt in which it was sent.
  void send_late(int from, int to, int sent_in, Tag tag, const Value& value) {
    late_.push_back({.from = from, .to = to, .sent_in = sent_in, .tag = tag, .value = value});
  }
  // Kills all that is still alive in any attempt and lets it unwind.
  void kill_all();

  Disk& disk() { return disk_; }
  Scheduler& scheduler() { return scheduler_; }
  std::uint64_t next_serial() { return serial_++; }  // of a fiber
  const CostTable& costs() const { return options_.costs; }
  Time now() const { return scheduler_.now(); }
  // By how much the node's clock is wrong, as modification times show it. Deadlines go by the true time.
  void skew_clock(int node, Duration by) { clock_skew_[node] += by; }
  Duration clock_skew(int node) const {
    if (clock_skew_.empty()) return Duration{0};
    const auto skew = clock_skew_.find(node);
    return skew == clock_skew_.end() ? Duration{0} : skew->second;
  }

 private:
  struct Late {
    int from = 0;
    int to = 0;
    int sent_in = 0;
    Tag tag = 0;
    Value value;
  };

  std::map<int, Duration> clock_skew_;  // by node
  std::vector<Late> late_;
  MachineOptions options_;
  Scheduler scheduler_;
  Disk disk_;
  std::vector<std::unique_ptr<Attempt>> attempts_;
  std::size_t attempts_in_use_ = 0;
  std::uint64_t serial_ = 0;
};

// Charges a kernel's virtual time (by its kind, not scaled by the schedule) and then runs it; `dead` if the rank is.
class CostedCompute final : public ForwardingCompute {
 public:
  CostedCompute(Compute& inner, Attempt& attempt, int rank);
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override;

 private:
  SimRank& rank_;
};

}  // namespace firedrill::sim
