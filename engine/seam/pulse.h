// Pulse: what one task of a rank shows of its work, for a watchdog that asks from outside: a count that goes up with
// every call through a seam, where the task is, and for whom it waits. A sign of life that a side task gives says
// nothing of the work; this does.
//
// Threads: one task writes; anybody reads. A reading may mix two moments, never within one number.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/seam/position.h"

namespace firedrill {

// How many deadlines a single wait for a rank that makes progress may last.
inline constexpr int patience_in_deadlines = 4;

struct PulseReading {
  static constexpr int nobody = -1;
  static constexpr int store = -2;  // a key that some peer has to set

  std::uint64_t progress = 0;
  int waits_for = nobody;  // a rank, or one of these
  std::int64_t step = 0;
  Phase phase = Phase::none;
  bool operator==(const PulseReading&) const = default;
};

class Pulse {
 public:
  void beat(const Position& position) {
    // One writer: no need for an atomic addition.
    progress_.store(progress_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    step_.store(position.step, std::memory_order_relaxed);
    phase_.store(position.phase, std::memory_order_relaxed);
  }
  void wait_for(int whom) { waits_for_.store(whom, std::memory_order_relaxed); }
  // The wait is over, by whatever way, and that is progress.
  void stop_waiting() {
    waits_for_.store(PulseReading::nobody, std::memory_order_relaxed);
    progress_.store(progress_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  PulseReading read() const {
    return {.progress = progress_.load(std::memory_order_relaxed),
            .waits_for = waits_for_.load(std::memory_order_relaxed),
            .step = step_.load(std::memory_order_relaxed),
            .phase = phase_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> progress_ = 0;
  std::atomic<int> waits_for_ = PulseReading::nobody;
  std::atomic<std::int64_t> step_ = 0;
  std::atomic<Phase> phase_ = Phase::none;
};

// The pulses of a rank's tasks. It holds no address, so it may lie in memory that processes share.
struct RankPulse {
  Pulse main;
  Pulse aside;  // of a second task, where there is one
  // While it is set, the main task waits for the second one, whose pulse counts meanwhile.
  std::atomic<bool> main_follows = false;

  // Of the main task.
  PulseReading read() const {
    PulseReading reading = main.read();
    if (main_follows.load(std::memory_order_acquire)) {
      const PulseReading its = aside.read();
      reading.progress += its.progress;
      reading.waits_for = its.waits_for;
      reading.step = its.step;
      reading.phase = its.phase;
    }
    return reading;
  }
};

}  // namespace firedrill
