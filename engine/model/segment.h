// Segment: a run of the model's parameters that lie and move together, as data: ONE flat f32 Value; the named tensors
// lie in it at offsets that are multiples of `grain`, and what lies between them is zero and stays zero.
//
// Piece: a part of the network with an activation in front of it and one behind it: the embedding, the attention or the
// MLP of a layer, the head. In a job of one tp lane and one cp lane a piece is one kernel over one segment. In every
// other job, and in one with experts, it has a segment that all lanes share (norm, positions) and one for each tp lane.
// A mixture of experts stands in the MLP's place: norm, router, and for each expert a segment for each tp lane.
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
  // Of models that are cut into lanes:
  position,        // all lanes: position weights
  norm,            // all lanes: the norm in front of attention, MLP, experts or head
  router,          // all lanes: which experts a token goes to
  token_lane,      // one tp lane: its part of the vocabulary's weights
  attention_lane,  // its heads
  mlp_lane,        // its hidden units
  head_lane,       // its part of the vocabulary's logits
  expert_lane,     // its hidden units of one expert
};

struct Segment {
  std::string name;  // "embed", "layers.0.attention", "layers.0.mlp", "head"
  SegmentKind kind = SegmentKind::embed;
  std::uint32_t layer = 0;
  std::uint32_t index = 0;  // in the model's list
  int tp_lane = -1;         // whose part it is; -1: all lanes share it
  int expert = -1;          // of which expert of the layer; -1: of none
  std::vector<TensorSpec> tensors;
  std::int64_t count = 0;  // elements of the flat Value, padding included; a multiple of `grain`
  bool has_dropout = false;
  bool tied = false;   // token weights that the head projects with, too
  Value decay_ranges;  // i64 pairs [begin, end): the elements that weight decay applies to, ascending

  std::int64_t parameter_count() const;  // without padding
  // Its gradient comes by (cp, tp) chunk; that of other segments by cp lane.
  bool by_chunk() const { return tp_lane < 0 && kind != SegmentKind::router; }
};

enum class PieceKind : std::uint8_t { embed, attention, mlp, head, moe };

struct Piece {
  PieceKind kind = PieceKind::embed;
  std::uint32_t layer = 0;
  std::size_t shared = 0;  // index of the segment that all lanes share, or of the only one
  // Index of the first tp lane's segment; the others follow. 0: there are none. A tied head has those of the embedding.
  std::size_t lanes = 0;
  // Of a mixture of experts; the lanes of expert e + 1 follow those of expert e.
  std::size_t router = 0;
  int experts = 0;
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
