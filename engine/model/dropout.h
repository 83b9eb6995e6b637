// Dropout whose mask is a pure function of (key, counter, element): 16 bits of Philox per element decide. Backward
// draws the same mask again; nothing is kept between the two.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "engine/model/matmul.h"
#include "engine/model/mixed.h"
#include "engine/model/shapes.h"

namespace firedrill {

class Dropout {
 public:
  // `scalars`: any with key, counter, drop_threshold and keep_scale_bits.
  template <class Scalars>
  explicit Dropout(const Scalars& scalars)
      : key_(scalars.key),
        counter_(scalars.counter),
        threshold_(scalars.drop_threshold),
        scale_(std::bit_cast<float>(scalars.keep_scale_bits)) {}

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

// The gradient of what went into a segment's dropout: the given one where nothing is dropped, else a masked copy, for
// matrix products to read.
class DroppedGradient {
 public:
  DroppedGradient(const SegmentScalars& scalars, std::span<const float> gradient)
      : copy_(scalars.drop_threshold > 0 ? static_cast<std::int64_t>(gradient.size()) : 0), data_(gradient.data()) {
    const Dropout dropout(scalars);
    if (!dropout.active()) return;
    dropout.apply(gradient, {copy_.data(), gradient.size()});
    round_operand(scalars, copy_.data(), static_cast<std::int64_t>(gradient.size()));
    data_ = copy_.data();
  }
  const float* data() const { return data_; }

 private:
  Scratch copy_;
  const float* data_;
};

}  // namespace firedrill
