// One flipped bit, in the middle of what it is in. Each fault of a plan has its own, so that two of them at one place
// damage it twice instead of the second undoing the first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/base/value.h"

namespace firedrill {

// The same bytes with one bit of byte `at`, which must be one of them, flipped: that of the fault with this index.
inline Value with_bit_flipped(const Value& bytes, std::size_t at, int fault) {
  MutableValue flipped(DType::u8, Shape{static_cast<std::int64_t>(bytes.size())});
  const auto from = bytes.bytes();
  std::copy(from.begin(), from.end(), flipped.bytes().begin());
  flipped.bytes()[at] ^= std::byte{1} << (4 + fault) % 8;
  return std::move(flipped).freeze();
}

}  // namespace firedrill
