// Initial parameters: a pure function of (seed, tensor name, shape), with no libm in it, so that every machine starts
// from the same bits. A tp lane's part of a tensor has the numbers of the whole one. Scales are those of GPT-2: 0.02
// for matrices, divided by sqrt(2 * layers) where a matrix writes to the residual stream; norms start as 1 and 0.
#pragma once

#include <string>

#include "engine/model/lane_shapes.h"
#include "engine/model/segment.h"

namespace firedrill {

struct InitialScalars {
  SegmentScalars dimensions;
  std::uint64_t seed = 0;
  std::uint32_t kind = 0;  // SegmentKind
  std::uint32_t layer = 0;
  std::uint32_t layers = 0;
  std::uint32_t piece = 0;  // PieceKind
  std::uint32_t tp_lanes = 1;
  std::uint32_t tp_lane = 0;  // of a lane's segment
  std::uint32_t experts = 0;
  std::uint32_t expert = 0;  // of an expert's segment
};

// "embed", "layers.3.mlp".
std::string piece_name(PieceKind kind, std::uint32_t layer);
// What a segment's name begins with: the piece's name, "layers.3.router", "layers.3.experts.5".
std::string segment_stem(SegmentKind segment, PieceKind piece, std::uint32_t layer, int expert);

std::vector<NamedShape> tensors_of(SegmentKind kind, const SegmentScalars& dimensions, std::uint32_t tp_lanes,
                                   std::uint32_t experts);

// Where the elements of a lane's tensor lie in the whole tensor.
LanePart lane_part(const NamedShape& tensor, std::uint32_t tp_lanes, std::uint32_t tp_lane);

}  // namespace firedrill
