// Segment: a piece of the model between two exchanges, as data. Its parameters are ONE flat f32 Value; the named
// tensors lie in it at offsets that are multiples of `grain`, and what lies between them is zero and stays zero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/value.h"

namespace firedrill {

struct TensorSpec {
  std::string name;  // "layers.0.attention.qkv.weight"
  Shape shape;
  std::int64_t offset = 0;  // in elements of the segment's flat Value
  bool decay = false;       // weight decay applies: matrices, not norms
  std::int64_t count() const { return shape.count(); }
};

enum class SegmentKind : std::uint8_t {
  embed,      // tokens -> activations: token + position, dropout
  attention,  // norm, fused QKV, causal attention, output projection, dropout, residual
  mlp,        // norm, fused gate and up, SiLU gate, down, dropout, residual
  head,       // norm, projection to the vocabulary, cross entropy
};

struct Segment {
  std::string name;  // "embed", "layers.0.attention", "layers.0.mlp", "head"
  SegmentKind kind = SegmentKind::embed;
  std::uint32_t layer = 0;
  std::uint32_t index = 0;  // in the model's list
  std::vector<TensorSpec> tensors;
  std::int64_t count = 0;  // elements of the flat Value, padding included; a multiple of `grain`
  bool has_dropout = false;
  Value decay_ranges;  // i64 pairs [begin, end): the elements that weight decay applies to, ascending

  std::int64_t parameter_count() const;  // without padding
};

// Where a lane's random numbers stand. `key` names the lane's stream (from the job's seed and the lane), `counter`
// counts its micro-batches: it is state, is saved, and goes up by one for every micro-batch. All segments of one
// micro-batch get the same RandomCounter; each derives numbers of its own from it.
struct RandomCounter {
  std::uint64_t key = 0;
  std::uint64_t counter = 0;
  bool operator==(const RandomCounter&) const = default;
};

}  // namespace firedrill
