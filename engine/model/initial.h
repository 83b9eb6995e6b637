// Initial parameters: a pure function of (seed, tensor name, shape), with no libm in it, so that every machine starts
// from the same bits. Scales are those of GPT-2: 0.02 for matrices, divided by sqrt(2 * layers) where a matrix writes
// to the residual stream; norms start as 1 and 0.
#pragma once

#include <string>

#include "engine/model/segment.h"
#include "engine/model/shapes.h"

namespace firedrill {

struct InitialScalars {
  SegmentScalars dimensions;
  std::uint64_t seed = 0;
  std::uint32_t kind = 0;  // SegmentKind
  std::uint32_t layer = 0;
  std::uint32_t layers = 0;
  std::uint32_t reserved = 0;
};

// "embed", "layers.3.mlp".
std::string segment_name(SegmentKind kind, std::uint32_t layer);

std::vector<NamedShape> tensors_of(SegmentKind kind, const SegmentScalars& dimensions);

}  // namespace firedrill
