// Dropout whose mask is a pure function of (key, counter, element): 16 bits of Philox per element decide. Backward
// draws the same mask again; nothing is kept between the two.
#pragma once

#include <cstdint>
#include <span>

#include "engine/model/shapes.h"

namespace firedrill {

class Dropout {
 public:
  explicit Dropout(const SegmentScalars& scalars);

  bool active() const { return threshold_ > 0; }
  // out = in * mask / (1 - p). May be in place.
  void apply(std::span<const float> in, std::span<float> out) const;
  // out = residual + in * mask / (1 - p). May be in place.
  void apply_and_add(std::span<const float> in, std::span<const float> residual, std::span<float> out) const;

 private:
  std::uint64_t key_;
  std::uint64_t counter_;
  std::uint32_t threshold_;
  float scale_;
};

}  // namespace firedrill
