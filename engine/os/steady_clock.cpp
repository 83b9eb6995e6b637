#include "engine/os/steady_clock.h"

#include "engine/base/check.h"

namespace firedrill {

using std::chrono::steady_clock;

// The steady clock of libstdc++ is CLOCK_MONOTONIC, which counts the same in every process of a machine.
Epoch Epoch::now() { return Epoch{.since_boot = steady_clock::now().time_since_epoch()}; }

Time Epoch::elapsed() const { return steady_clock::now().time_since_epoch() - since_boot; }

steady_clock::time_point Epoch::at(Time time) const {
  if (time > Time::max() - since_boot) return steady_clock::time_point::max();
  return steady_clock::time_point(since_boot + time);
}

void AbortSignal::raise(const Error& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (reason_) return;
    reason_ = reason;
    reason_->code = Code::aborted;
    raised_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

Error AbortSignal::reason() const {
  const std::lock_guard lock(mutex_);
  FD_CHECK(reason_.has_value(), "the reason of a signal that was not raised");
  return *reason_;
}

Status AbortSignal::sleep_until(steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, until, [this] { return reason_.has_value(); })) return *reason_;
  return {};
}

}  // namespace firedrill
