// MemoryUse: how many bytes of Values a rank holds, by class, counted where they are taken and let go: what is held
// logically, whatever the world shares, the memo remembers or the allocator keeps. So both worlds count the same, and
// the planner (engine/job/memory.h) can be held against it.
//
// Counted are the state, the accumulators of gradients, and the activations that lie between pieces: inputs kept for
// backwards, the activation and the gradient in hand, tokens. What is inside of a piece is not.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/value.h"

namespace firedrill {

struct MemoryUse {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;  // the most in a step
  std::int64_t masters = 0;
  std::int64_t moments = 0;
  std::int64_t activations = 0;  // the most in a step

  std::int64_t persistent() const { return parameters + gradients + masters + moments; }
  bool operator==(const MemoryUse&) const = default;
};

inline std::int64_t bytes_held(const Value& value) {
  return value ? static_cast<std::int64_t>(value.bytes_total()) : 0;
}

// What is there now, and the most there was.
class HighWater {
 public:
  void take(std::int64_t bytes) {
    live_ += bytes;
    see(0);
  }
  void let_go(std::int64_t bytes) { live_ -= bytes; }
  // For a moment there are so many bytes besides.
  void see(std::int64_t more) { peak_ = std::max(peak_, live_ + more); }
  std::int64_t peak() const { return peak_; }

 private:
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace firedrill
