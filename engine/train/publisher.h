// AsyncPublisher: publishes a snapshot in a second task of the rank while training goes on. At most one publish is in
// flight; whoever dispatches the next one, or ends the job, joins the one before first (back-pressure).
//
// The second task lives for one publish. It works with parts, a position and a group of its own, so that its messages,
// faults and events never mix with those of training. The snapshot holds Values, which nobody changes: taking it copies
// no data, and an optimizer that finds its buffers held makes new ones.
//
// Lifetime: the world that hosts the rank owns this object, because the second task may outlive the main task by the
// moments that its death takes. When the main task ends, the world ends the second one.
// Threads: dispatch, in_flight, done and join by the main task, publish by the second one. Errors: dispatch and join
// give those of the host seam; join also what the publish gave.
#pragma once

#include <atomic>
#include <optional>
#include <string_view>

#include "engine/ckpt/protocol.h"

namespace firedrill {

class AsyncPublisher {
 public:
  static constexpr std::string_view task_name = "publisher";

  AsyncPublisher() = default;
  virtual ~AsyncPublisher() = default;
  AsyncPublisher(const AsyncPublisher&) = delete;
  AsyncPublisher& operator=(const AsyncPublisher&) = delete;

  // `checkpoints` is the context of the main task; `own` are the parts of the second task, and `group` is a group of
  // all ranks that nothing else uses. All but the group must outlive this object. Called once, before all others.
  void open(const CheckpointContext& checkpoints, Parts& own, Group group, Protocol& protocol);

  // Starts to publish `state` as the state after `step`. None may be in flight.
  virtual Status dispatch(std::int64_t step, const StateView& state, const Digest& state_digest);
  // A publish was dispatched and its outcome not yet taken by join.
  bool in_flight() const { return in_flight_; }
  // Its outcome is there: join will not wait.
  bool done() const { return done_.load(std::memory_order_acquire); }
  // Of the publish in flight, or of the one before.
  std::int64_t step() const { return step_; }
  // Waits for the publish in flight, if there is one, and takes its outcome.
  virtual Status join();

 protected:
  // The whole publish, on the second task.
  virtual Result<Publication> publish(std::int64_t step, const StateView& snapshot, const Digest& state_digest);

  const CheckpointContext& context() const { return *context_; }  // of the second task
  Protocol& protocol() const { return *protocol_; }
  Parts& main_parts() const { return *main_; }

 private:
  void run();

  std::optional<CheckpointContext> context_;
  Group group_;
  Protocol* protocol_ = nullptr;
  Parts* main_ = nullptr;
  // Of the publish in flight.
  std::int64_t step_ = 0;
  StateView snapshot_;
  Digest state_digest_;
  Status outcome_;
  std::atomic<bool> done_ = false;
  bool in_flight_ = false;
};

}  // namespace firedrill
