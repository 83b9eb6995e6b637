// One flipped bit, in the middle of what it is in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/base/value.h"

namespace firedrill {

// The same bytes with one bit of byte `at` flipped. `at` must be one of them.
inline Value with_bit_flipped(const Value& bytes, std::size_t at) {
  MutableValue flipped(DType::u8, Shape{static_cast<std::int64_t>(bytes.size())});
  const auto from = bytes.bytes();
  std::copy(from.begin(), from.end(), flipped.bytes().begin());
  flipped.bytes()[at] ^= std::byte{0x10};
  return std::move(flipped).freeze();
}

}  // namespace firedrill
