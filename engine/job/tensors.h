// Sizes of a model's segments for any shape that a job file can give, also one that the engine cannot run: the engine's
// own tensor list (engine/model), without the tensors. A test there holds the two together.
//
// Pure functions. Sizes are elements; `count` has each tensor padded to whole grains of 64, as it lies in memory.
#pragma once

#include <cstdint>

#include "engine/job/job.h"

namespace firedrill {

enum class PieceRole : std::uint8_t { embed, attention, mlp, head };

struct SegmentSize {
  std::int64_t parameters = 0;
  std::int64_t count = 0;
  bool operator==(const SegmentSize&) const = default;
};

// A piece has a segment that all tp lanes share, and one for each tp lane; a mixture of experts has a router besides,
// and a segment for each expert and tp lane. In a job where pieces are run whole everything lies in the shared one. A
// head that is tied to the embedding has the embedding's segments for its lanes.
struct PieceSize {
  SegmentSize shared;
  SegmentSize router;
  SegmentSize lane;    // of one tp lane
  SegmentSize expert;  // of one expert, in one tp lane
};

// Heads of keys and values.
inline int kv_heads_of(const ModelSpec& model) { return model.kv_heads > 0 ? model.kv_heads : model.heads; }

// Pieces are run whole: one tp lane, one cp lane, no experts, no tied weights.
bool runs_whole(const Job& job);
PieceSize size_of(PieceRole role, const Job& job);

// Of the whole model, without padding. A tied weight counts once.
std::int64_t parameter_count(const Job& job);
// Of those the ones that one token passes: top_k of the experts only.
std::int64_t active_parameter_count(const Job& job);

}  // namespace firedrill
