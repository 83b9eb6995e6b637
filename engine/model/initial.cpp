#include "engine/model/initial.h"

#include <cmath>
#include <string_view>

#include "engine/base/rng.h"
#include "engine/model/kernels.h"

namespace firedrill {
namespace {

// Nearly normal, mean 0 and variance 1: the sum of eight uniform 16-bit numbers (Irwin-Hall), from one Philox block.
double nearly_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  constexpr double mean = 8 * 65535.0 / 2;
  constexpr double variance = 8 * (65536.0 * 65536.0 - 1) / 12;
  std::uint32_t sum = 0;
  for (const std::uint32_t word : philox(seed, stream, counter)) sum += (word & 0xFFFF) + (word >> 16);
  return (sum - mean) / std::sqrt(variance);  // sqrt is exact to the last bit by IEEE 754
}

// `whole_name` names the whole tensor; `place(i)` is where element i lies in it.
template <class Place>
void fill(std::span<float> tensor, std::string_view name, const std::string& whole_name, const InitialScalars& s,
          Place place) {
  if (name == "norm.weight" || name == "norm.bias") {
    std::fill(tensor.begin(), tensor.end(), name == "norm.weight" ? 1.0F : 0.0F);
    return;
  }
  const bool to_residual = name == "out.weight" || name == "down.weight";
  const double deviation = to_residual ? 0.02 / std::sqrt(2.0 * s.layers) : 0.02;
  const std::uint64_t stream = stream_id(whole_name);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    tensor[i] = static_cast<float>(deviation * nearly_normal(s.seed, stream, place(i)));
  }
}

bool is_lane(SegmentKind kind) { return kind >= SegmentKind::token_lane; }

}  // namespace

std::string piece_name(PieceKind kind, std::uint32_t layer) {
  switch (kind) {
    case PieceKind::embed: return "embed";
    case PieceKind::attention: return fmt::format("layers.{}.attention", layer);
    case PieceKind::mlp: return fmt::format("layers.{}.mlp", layer);
    case PieceKind::head: return "head";
    case PieceKind::moe: return fmt::format("layers.{}.moe", layer);
  }
  return "?";
}

std::string segment_stem(SegmentKind segment, PieceKind piece, std::uint32_t layer, int expert) {
  if (segment == SegmentKind::router) return fmt::format("layers.{}.router", layer);
  if (segment == SegmentKind::expert_lane) return fmt::format("layers.{}.experts.{}", layer, expert);
  return piece_name(piece, layer);
}

std::vector<NamedShape> tensors_of(SegmentKind kind, const SegmentScalars& d, std::uint32_t tp_lanes,
                                   std::uint32_t experts) {
  const auto list = [](const auto& tensors) { return std::vector<NamedShape>(tensors.begin(), tensors.end()); };
  switch (kind) {
    case SegmentKind::embed: return list(embed_tensors(d));
    case SegmentKind::attention: return list(attention_tensors(d));
    case SegmentKind::mlp: return list(mlp_tensors(d));
    case SegmentKind::head: return list(head_tensors(d));
    case SegmentKind::position: return list(position_tensors(d.sequence, d.width));
    case SegmentKind::norm: return list(norm_tensors(d.width));
    case SegmentKind::router: return list(router_tensors(experts, d.width));
    case SegmentKind::token_lane: return list(token_lane_tensors(d.vocabulary, d.width, tp_lanes));
    case SegmentKind::attention_lane: return list(attention_lane_tensors(d.width, tp_lanes));
    case SegmentKind::expert_lane:
    case SegmentKind::mlp_lane: return list(mlp_lane_tensors(d.width, d.hidden, tp_lanes));
    case SegmentKind::head_lane: return list(head_lane_tensors(d.vocabulary, d.width, tp_lanes));
  }
  return {};
}

LanePart lane_part(const NamedShape& tensor, std::uint32_t tp_lanes, std::uint32_t tp_lane) {
  const std::string_view name = tensor.name;
  if (name == "out.weight" || name == "down.weight") return columns_part(tensor.shape, tp_lanes, tp_lane);
  const int parts = name == "qkv.weight" ? 3 : name == "gate_up.weight" ? 2 : 1;
  return rows_part(tensor.shape, parts, tp_lanes, tp_lane);
}

Result<Value> initial_parameters_of(std::span<const std::byte> scalars, std::span<Value>) {
  const auto s = scalars_as<InitialScalars>(scalars);
  const auto kind = static_cast<SegmentKind>(s.kind);
  const std::vector<NamedShape> tensors = tensors_of(kind, s.dimensions, s.tp_lanes, s.experts);
  const std::string stem = segment_stem(kind, static_cast<PieceKind>(s.piece), s.layer, static_cast<int>(s.expert));
  std::int64_t count = 0;
  for (const NamedShape& tensor : tensors) count += whole_grains(tensor.shape.count());
  MutableValue out(DType::f32, Shape{count});
  const std::span<float> flat = out.as<float>();
  std::fill(flat.begin(), flat.end(), 0.0F);
  std::size_t offset = 0;
  for (const NamedShape& tensor : tensors) {
    const auto part = flat.subspan(offset, static_cast<std::size_t>(tensor.shape.count()));
    const std::string name = fmt::format("{}.{}", stem, tensor.name);
    if (is_lane(kind)) {
      const LanePart lane = lane_part(tensor, s.tp_lanes, s.tp_lane);
      fill(part, tensor.name, name, s,
           [&](std::size_t i) { return static_cast<std::uint64_t>(lane.whole_index(static_cast<std::int64_t>(i))); });
    } else {
      fill(part, tensor.name, name, s, [](std::size_t i) { return i; });
    }
    offset += static_cast<std::size_t>(whole_grains(tensor.shape.count()));
  }
  return std::move(out).freeze();
}

}  // namespace firedrill
