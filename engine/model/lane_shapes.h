// The tensors of a model that is cut into tensor-parallel lanes, and which part of the whole tensor each lane has.
//
// A matrix is cut along its output rows (token, qkv, gate_up and output weights: column-parallel layers) or along its
// input columns (out and down weights: row-parallel layers). Fused matrices are cut within each of their parts, so that
// every lane has the q, k and v of its heads and the gate and up of its hidden units.
#pragma once

#include <array>
#include <cstdint>

#include "engine/model/shapes.h"

namespace firedrill {

// The scalars of every kernel that works on one lane. Fields that a kernel does not read are left at zero.
struct LaneScalars {
  std::uint64_t key = 0;  // of the chunk's own random stream; 0 without dropout
  std::uint64_t counter = 0;
  std::uint32_t sequence = 0;
  std::uint32_t width = 0;
  std::uint32_t heads = 0;
  std::uint32_t hidden = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t tp_lanes = 1;
  std::uint32_t tp_lane = 0;
  std::uint32_t cp_lanes = 1;
  std::uint32_t cp_lane = 0;
  std::uint32_t drop_threshold = 0;
  std::uint32_t keep_scale_bits = 0;
  std::uint32_t factor_bits = 0;
  std::uint32_t dtype = static_cast<std::uint32_t>(DType::f32);
  std::uint32_t reserved = 0;
};

inline std::array<NamedShape, 1> position_tensors(std::uint32_t sequence, std::uint32_t width) {
  return {{{"position.weight", {sequence, width}}}};
}

inline std::array<NamedShape, 2> norm_tensors(std::uint32_t width) {
  return {{{"norm.weight", {width}}, {"norm.bias", {width}}}};
}

inline std::array<NamedShape, 1> router_tensors(std::uint32_t experts, std::uint32_t width) {
  return {{{"weight", {experts, width}}}};
}

inline std::array<NamedShape, 1> token_lane_tensors(std::uint32_t vocabulary, std::uint32_t width,
                                                    std::uint32_t lanes) {
  return {{{"token.weight", {vocabulary / lanes, width}}}};
}

inline std::array<NamedShape, 2> attention_lane_tensors(std::uint32_t width, std::uint32_t lanes) {
  return {{{"qkv.weight", {3 * (width / lanes), width}}, {"out.weight", {width, width / lanes}}}};
}

inline std::array<NamedShape, 2> mlp_lane_tensors(std::uint32_t width, std::uint32_t hidden, std::uint32_t lanes) {
  return {{{"gate_up.weight", {2 * (hidden / lanes), width}}, {"down.weight", {width, hidden / lanes}}}};
}

inline std::array<NamedShape, 1> head_lane_tensors(std::uint32_t vocabulary, std::uint32_t width, std::uint32_t lanes) {
  return {{{"output.weight", {vocabulary / lanes, width}}}};
}

// Where the elements of a lane's tensor lie in the whole one: the whole has `parts` fused matrices one under the other,
// and the lane has the same run of rows of each, and a run of columns.
struct LanePart {
  std::int64_t parts = 1;
  std::int64_t rows = 0;        // of one part, in the lane
  std::int64_t whole_rows = 0;  // of one part
  std::int64_t first_row = 0;
  std::int64_t columns = 0;
  std::int64_t whole_columns = 0;
  std::int64_t first_column = 0;

  // The place in the whole tensor of element `i` of the lane's.
  std::int64_t whole_index(std::int64_t i) const {
    const std::int64_t row = i / columns;
    return (row / rows * whole_rows + first_row + row % rows) * whole_columns + first_column + i % columns;
  }
  std::int64_t whole_count() const { return parts * whole_rows * whole_columns; }
};

// `shape`: of the lane's tensor.
inline LanePart rows_part(const Shape& shape, std::int64_t parts, std::int64_t lanes, std::int64_t lane) {
  const std::int64_t rows = shape[0] / parts;
  return {.parts = parts,
          .rows = rows,
          .whole_rows = rows * lanes,
          .first_row = rows * lane,
          .columns = shape[1],
          .whole_columns = shape[1]};
}

inline LanePart columns_part(const Shape& shape, std::int64_t lanes, std::int64_t lane) {
  return {.rows = shape[0],
          .whole_rows = shape[0],
          .columns = shape[1],
          .whole_columns = shape[1] * lanes,
          .first_column = shape[1] * lane};
}

// The tokens of one cp lane: chunks i and 2n - 1 - i of 2n, or the whole sequence if there is one lane.
struct LaneSequence {
  LaneSequence(std::int64_t sequence, std::int64_t cp_lanes, std::int64_t cp_lane)
      : lanes(cp_lanes),
        lane(cp_lane),
        chunks(cp_lanes > 1 ? 2 : 1),
        chunk_size(sequence / (cp_lanes * chunks)),
        size(chunks * chunk_size) {}

  // The number, in the sequence's order, of the lane's own chunk `i`.
  std::int64_t chunk(std::int64_t i) const { return i == 0 ? lane : 2 * lanes - 1 - lane; }
  // The lane that has chunk `number`, and which of its own it is.
  std::int64_t lane_of(std::int64_t number) const { return number < lanes ? number : 2 * lanes - 1 - number; }
  std::int64_t slot_of(std::int64_t number) const { return number < lanes ? 0 : 1; }
  // The place in the sequence of the lane's token `t`.
  std::int64_t position(std::int64_t t) const { return chunk(t / chunk_size) * chunk_size + t % chunk_size; }

  std::int64_t lanes;
  std::int64_t lane;
  std::int64_t chunks;
  std::int64_t chunk_size;
  std::int64_t size;  // tokens of the lane
};

}  // namespace firedrill
