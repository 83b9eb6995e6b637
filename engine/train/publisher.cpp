#include "engine/train/publisher.h"

#include <exception>

namespace firedrill {
namespace {

constexpr EventId publish_done = 1;

// References to the Values. The lists have one structure as long as the trainer lives, so its names are copied once.
void take_snapshot(const StateView& state, StateView& snapshot) {
  if (snapshot.size() != state.size()) {
    snapshot = state;
    return;
  }
  for (std::size_t i = 0; i < state.size(); ++i) snapshot[i].value = state[i].value;
}

}  // namespace

void AsyncPublisher::open(const CheckpointContext& checkpoints, Parts& own, Group group, Protocol& protocol) {
  main_ = &checkpoints.parts;
  protocol_ = &protocol;
  group_ = std::move(group);
  context_.emplace(CheckpointContext{.parts = own,
                                     .job = checkpoints.job,
                                     .world = group_,
                                     .identity = checkpoints.identity,
                                     .attempt = checkpoints.attempt,
                                     .floor = checkpoints.floor});
}

Status AsyncPublisher::dispatch(std::int64_t step, const StateView& state, const Digest& state_digest) {
  FD_CHECK(!in_flight_, "step {} is dispatched while step {} is in flight", step, step_);
  step_ = step;
  state_digest_ = state_digest;
  take_snapshot(state, snapshot_);
  done_.store(false, std::memory_order_relaxed);
  FD_TRY_VOID(main_->host.spawn(task_name, [this] { run(); }));
  in_flight_ = true;
  return {};
}

void AsyncPublisher::run() {
  context_->parts.position.step = step_;
  try {
    Result<Publication> published = publish(step_, snapshot_, state_digest_);
    outcome_ = published ? Status() : Status(std::move(published).error());
  } catch (const std::exception& failure) {
    // A failed check of this task is the rank's: the main task ends with it.
    outcome_ = Error{.code = Code::internal, .message = failure.what()};
  }
  for (StateGroup& group : snapshot_) group.value = {};
  done_.store(true, std::memory_order_release);
  context_->parts.host.notify(publish_done);
}

Result<Publication> AsyncPublisher::publish(std::int64_t step, const StateView& snapshot, const Digest& state_digest) {
  return protocol_->publish(*context_, step, snapshot, state_digest);
}

Status AsyncPublisher::join() {
  if (!in_flight_) return {};
  // The event may still be set by a publish whose end was seen without a wait. Each wait of a publish has a deadline,
  // so a publish ends, and this wait needs none of its own.
  while (!done()) FD_TRY_VOID(main_->host.wait(publish_done, Time::max()));
  in_flight_ = false;
  return std::move(outcome_);
}

}  // namespace firedrill
