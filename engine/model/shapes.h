// Which tensors each kind of segment has and where they lie in its flat Value: one list, read by the kernels and by the
// model's description alike.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "engine/base/value.h"
#include "engine/seam/collectives.h"  // grain

namespace firedrill {

// The scalars of every segment kernel. `rows` is not here: it is in the input's shape.
struct SegmentScalars {
  std::uint64_t key = 0;  // of the segment's own random stream; 0 without dropout
  std::uint64_t counter = 0;
  std::uint32_t sequence = 0;
  std::uint32_t width = 0;
  std::uint32_t heads = 0;
  std::uint32_t hidden = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t drop_threshold = 0;   // an element is dropped if its 16 random bits are below; 0 drops nothing
  std::uint32_t keep_scale_bits = 0;  // float: 1 / (1 - dropout)
  std::uint32_t factor_bits = 0;      // float: of the head's backward
  std::uint32_t dtype = static_cast<std::uint32_t>(DType::f32);  // of parameters and activations
  std::uint32_t reserved = 0;
};

struct NamedShape {
  const char* name;
  Shape shape;
};

inline std::array<NamedShape, 2> embed_tensors(const SegmentScalars& s) {
  return {{{"token.weight", {s.vocabulary, s.width}}, {"position.weight", {s.sequence, s.width}}}};
}

inline std::array<NamedShape, 4> attention_tensors(const SegmentScalars& s) {
  return {{{"norm.weight", {s.width}},
           {"norm.bias", {s.width}},
           {"qkv.weight", {3 * s.width, s.width}},
           {"out.weight", {s.width, s.width}}}};
}

inline std::array<NamedShape, 4> mlp_tensors(const SegmentScalars& s) {
  return {{{"norm.weight", {s.width}},
           {"norm.bias", {s.width}},
           {"gate_up.weight", {2 * s.hidden, s.width}},
           {"down.weight", {s.width, s.hidden}}}};
}

inline std::array<NamedShape, 3> head_tensors(const SegmentScalars& s) {
  return {{{"norm.weight", {s.width}}, {"norm.bias", {s.width}}, {"output.weight", {s.vocabulary, s.width}}}};
}

inline std::int64_t whole_grains(std::int64_t count) { return (count + grain - 1) / grain * grain; }

// A segment's flat buffer as its tensors. `Element` is float or const float.
template <class Element, std::size_t n>
class Slots {
 public:
  Slots(std::span<Element> flat, const std::array<NamedShape, n>& tensors) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t count = tensors[i].shape.count();
      FD_CHECK(offset + whole_grains(count) <= static_cast<std::int64_t>(flat.size()), "{} ends behind {} elements",
               tensors[i].name, flat.size());
      slots_[i] = flat.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
      offset += whole_grains(count);
    }
    FD_CHECK(offset == static_cast<std::int64_t>(flat.size()), "{} elements for tensors of {}", flat.size(), offset);
  }
  std::span<Element> operator[](std::size_t i) const { return slots_[i]; }

  // Zeroes what lies between the tensors; the tensors themselves are left alone.
  void clear_padding() const requires(!std::is_const_v<Element>) {
    for (const auto& slot : slots_) {
      Element* end = slot.data() + slot.size();
      std::fill(end, slot.data() + whole_grains(static_cast<std::int64_t>(slot.size())), Element{0});
    }
  }

 private:
  std::array<std::span<Element>, n> slots_;
};

template <std::size_t n>
std::int64_t flat_count(const std::array<NamedShape, n>& tensors) {
  std::int64_t count = 0;
  for (const NamedShape& tensor : tensors) count += whole_grains(tensor.shape.count());
  return count;
}

template <class Element, std::size_t n>
Slots(std::span<Element>, const std::array<NamedShape, n>&) -> Slots<Element, n>;

}  // namespace firedrill
