// SteadyClock: Clock over the machine's monotonic clock. All processes of one world share an epoch, which the
// supervisor chooses and hands down, so times of different ranks can be compared and sorted.
//
// AbortSignal: the one place from which the waits of a rank's clock, host and store are ended.
//
// Threads: everything here may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "engine/base/result.h"
#include "engine/seam/clock.h"

namespace firedrill {

// When the world began. A plain number, so that it can be handed to another process of the same machine.
struct Epoch {
  std::chrono::nanoseconds since_boot{0};

  static Epoch now();
  Time elapsed() const;
  // The moment a deadline means; deadlines too far for the clock become its latest moment.
  std::chrono::steady_clock::time_point at(Time time) const;
};

class AbortSignal {
 public:
  // The first reason stays.
  void raise(const Error& reason);
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  Error reason() const;  // of a raised signal
  // Returns well at `until`, with `aborted` as soon as the signal is raised.
  Status sleep_until(std::chrono::steady_clock::time_point until);

 private:
  std::atomic<bool> raised_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> reason_;
};

class SteadyClock final : public Clock {
 public:
  SteadyClock(Epoch epoch, AbortSignal& abort) : epoch_(epoch), abort_(abort) {}
  Time now() const override { return epoch_.elapsed(); }
  Status sleep_until(Time time) override { return abort_.sleep_until(epoch_.at(time)); }
  Epoch epoch() const { return epoch_; }

 private:
  Epoch epoch_;
  AbortSignal& abort_;
};

}  // namespace firedrill
