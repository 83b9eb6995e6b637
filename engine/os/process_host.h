// ProcessHost: Host of a rank that is a real process. Tasks are threads; kill_self is a real SIGKILL.
//
// join_tasks, and the destructor, wait for all tasks: end their waits (AbortSignal, Transport::abort) first.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "engine/os/steady_clock.h"
#include "engine/seam/host.h"

namespace firedrill {

class ProcessHost final : public Host {
 public:
  ProcessHost(int node, Epoch epoch);
  ~ProcessHost() override;
  int node() const override { return node_; }
  Status spawn(std::string_view name, std::function<void()> task) override;
  Status wait(EventId event, Time deadline) override;
  void notify(EventId event) override;
  // Does not return.
  void kill_self() override;
  bool dead() const override { return false; }  // a dead process asks nothing
  bool stop_requested() const { return stop_requested_.load(std::memory_order_acquire); }
  void request_stop() { stop_requested_.store(true, std::memory_order_release); }
  // All waits end with `aborted`, now and later.
  void abort(const Error& reason);
  // Returns when every task has ended. Called by none of them.
  void join_tasks();

 private:
  struct Task {
    std::thread thread;
    std::atomic<bool> ended = false;
  };

  int node_;
  Epoch epoch_;
  std::atomic<bool> stop_requested_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<EventId, bool> notified_;
  std::optional<Error> aborted_;
  std::list<Task> tasks_;  // those that have ended go with the next spawn
};

}  // namespace firedrill
