#include "faults/damage.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

namespace firedrill {
namespace {

bool is_number(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

// A leaf: the path to it, and whether it holds numbers.
struct Leaf {
  std::vector<std::size_t> path;
  bool numbers = false;
};

void collect(const Value& value, std::vector<std::size_t>& path, std::vector<Leaf>& leaves) {
  if (!value) return;
  if (!value.is_pack()) {
    if (value.size() > 0) leaves.push_back({.path = path, .numbers = is_number(value.dtype())});
    return;
  }
  for (std::size_t i = 0; i < value.parts().size(); ++i) {
    path.push_back(i);
    collect(value[i], path, leaves);
    path.pop_back();
  }
}

void write_nan(std::span<std::byte> element, DType dtype) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::uint16_t half = dtype == DType::bf16 ? 0x7FC0 : 0x7E00;
  if (dtype == DType::f32) {
    std::memcpy(element.data(), &nan, sizeof(nan));
  } else {
    std::memcpy(element.data(), &half, sizeof(half));
  }
}

// The top bit of the mantissa, so that the number changes by a good part of itself.
void flip_bit(std::span<std::byte> element, DType dtype) {
  if (dtype == DType::f16) {
    element[1] ^= std::byte{0x02};
  } else {
    element[dtype == DType::f32 ? 2 : 0] ^= std::byte{0x40};
  }
}

Value damaged_leaf(const Value& value, PayloadDamage damage) {
  MutableValue copy(value.dtype(), value.shape());
  std::ranges::copy(value.bytes(), copy.bytes().begin());
  const std::size_t size = size_of(value.dtype());
  const std::size_t count = value.size() / size;
  const auto element = copy.bytes().subspan(count / 2 * size, size);
  switch (damage) {
    case PayloadDamage::bit: flip_bit(element, value.dtype()); break;
    case PayloadDamage::nan:
      is_number(value.dtype()) ? write_nan(element, value.dtype()) : flip_bit(element, value.dtype());
      break;
    case PayloadDamage::wrong_shard:
      // As if its two halves had been mistaken for each other; what looks the same then is flipped.
      std::ranges::rotate(copy.bytes(), copy.bytes().begin() + static_cast<std::ptrdiff_t>(count / 2 * size));
      if (std::ranges::equal(copy.bytes(), value.bytes())) flip_bit(element, value.dtype());
      break;
  }
  return std::move(copy).freeze();
}

Value rebuilt(const Value& value, std::span<const std::size_t> path, PayloadDamage damage) {
  if (path.empty()) return damaged_leaf(value, damage);
  std::vector<Value> parts(value.parts().begin(), value.parts().end());
  parts[path[0]] = rebuilt(parts[path[0]], path.subspan(1), damage);
  return Value::pack(parts);
}

}  // namespace

bool can_be_damaged(const Value& value) {
  if (!value) return false;
  if (!value.is_pack()) return value.size() > 0;
  return std::ranges::any_of(value.parts(), can_be_damaged);
}

Value with_damage(const Value& value, const Spot& spot, PayloadDamage damage) {
  std::vector<Leaf> leaves;
  std::vector<std::size_t> path;
  collect(value, path, leaves);
  if (spot.kind == Spot::Kind::part) {
    std::erase_if(leaves, [&spot](const Leaf& leaf) { return leaf.path.empty() || leaf.path[0] != spot.part; });
  }
  if (std::ranges::any_of(leaves, &Leaf::numbers))
    std::erase_if(leaves, [](const Leaf& leaf) { return !leaf.numbers; });
  if (leaves.empty()) return value;
  return rebuilt(value, spot.kind == Spot::Kind::last ? leaves.back().path : leaves.front().path, damage);
}

}  // namespace firedrill
