// Damage to a Value that nobody is told of: one bit, one NaN, or the bytes of another shard, in the middle of one of
// its parts. A pack stays a pack of the same shape.
#pragma once

#include "engine/base/value.h"
#include "faults/spec.h"

namespace firedrill {

// Which part of a pack is hit: the first or last one with numbers in it, or the n-th part whatever it holds.
struct Spot {
  enum class Kind : std::uint8_t { first, last, part };
  Kind kind = Kind::first;
  std::size_t part = 0;
};

// It has bytes somewhere.
bool can_be_damaged(const Value& value);

// The same with one of its leaves damaged. Numbers are hit before other bytes; a NaN where there are no numbers is a
// flipped bit.
Value with_damage(const Value& value, const Spot& spot, PayloadDamage damage);

}  // namespace firedrill
