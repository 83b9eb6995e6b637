// SimRank: one rank of one attempt on the sim machine: its life (open, dead, fenced), its tasks, and its seams. Every
// seam call passes a gate before it spends time and again before it takes effect, so nothing of a dead or fenced rank
// has an effect. Used by machine.cpp and the seams only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sim/machine.h"
#include "engine/sim/store.h"
#include "engine/sim/transport.h"

namespace firedrill::sim {

class RankClock final : public Clock {
 public:
  explicit RankClock(SimRank& rank) : rank_(rank) {}
  Time now() const override;
  Status sleep_until(Time time) override;

 private:
  SimRank& rank_;
};

class RankHost final : public Host {
 public:
  explicit RankHost(SimRank& rank) : rank_(rank) {}
  int node() const override;
  Status spawn(std::string_view name, std::function<void()> task) override;
  Status wait(EventId event, Time deadline) override;
  void notify(EventId event) override;
  void kill_self() override;
  bool dead() const override;
  void clear() { events_.clear(); }

 private:
  struct Event {
    EventId id = 0;
    bool notified = false;
    Fiber* waiter = nullptr;
  };
  Event& event(EventId id);

  SimRank& rank_;
  std::vector<Event> events_;
};

class SimRank final : public DiskGate {
 public:
  explicit SimRank(Attempt& attempt);
  void reset(int rank, int node);

  int number() const { return rank_; }
  int node() const { return node_; }
  Attempt& attempt() { return attempt_; }
  const Attempt& attempt() const { return attempt_; }
  Scheduler& scheduler() { return machine_.scheduler(); }
  const Scheduler& scheduler() const { return machine_.scheduler(); }
  const CostTable& costs() const { return machine_.costs(); }
  Seams seams() { return {*files_, transport_, store_, clock_, host_}; }

  // Life.
  bool open() const { return gate_ == Gate::open; }
  bool dead() const { return gate_ == Gate::dead; }
  // What a call gets that found the rank not open: dead or fenced; of a frozen one, when that has become of it.
  Error refusal();
  RankEnd end() const { return end_; }
  const std::string& thrown() const { return thrown_; }
  void kill();
  void fence();
  // As by SIGSTOP: none of its tasks goes on, and nothing of it is heard, until it is killed.
  void freeze();
  // The running task goes on no more, whatever is aborted, until the rank is killed. Others do.
  void hold();
  void request_stop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }
  bool frozen() const { return gate_ == Gate::frozen; }
  bool halted() const { return frozen() || held_; }  // only a kill ends it
  // Waits end with `aborted` from that time on.
  void abort_at(Time time, const Error& reason);

  // A seam call: spends the time, then says whether it may take effect.
  Status enter(Duration cost) {
    if (!open()) return refusal();
    scheduler().charge(cost);
    if (!open()) return refusal();
    return {};
  }
  // The same for a call that ends when the attempt is aborted.
  Status enter_abortable(Duration cost) {
    FD_TRY_VOID(enter(cost));
    if (scheduler().now() >= abort_at_) return abort_reason_;
    return {};
  }
  // Blocks the running task once, until woken, `deadline`, abort or death. The caller looks again.
  Status wait(Time deadline, const WaitFor& what);

  Status pass(FileOp op, std::int64_t bytes) override;

  void start(std::function<void()> main);
  Status spawn(std::string_view name, std::function<void()> task);
  RankTransport& transport() { return transport_; }

 private:
  enum class Gate : std::uint8_t { open, dead, fenced, frozen };
  void run_task(bool is_main, const std::function<void()>& task);
  void main_ended();
  Fiber& spawn_fiber(std::string_view name, bool is_main, std::function<void()> task);

  Attempt& attempt_;
  Machine& machine_;
  int rank_ = 0;
  int node_ = 0;
  Gate gate_ = Gate::open;
  RankEnd end_ = RankEnd::running;
  bool main_has_ended_ = false;
  bool stop_requested_ = false;
  bool held_ = false;
  std::string thrown_;
  Time abort_at_ = never;
  Error abort_reason_;
  std::vector<Fiber*> tasks_;
  std::unique_ptr<FileSystem> files_;
  RankTransport transport_;
  RankStore store_;
  RankClock clock_;
  RankHost host_;
};

}  // namespace firedrill::sim
