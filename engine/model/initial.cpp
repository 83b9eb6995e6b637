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

void fill(std::span<float> tensor, std::string_view name, const std::string& full_name, const InitialScalars& s) {
  if (name == "norm.weight" || name == "norm.bias") {
    std::fill(tensor.begin(), tensor.end(), name == "norm.weight" ? 1.0F : 0.0F);
    return;
  }
  const bool to_residual = name == "out.weight" || name == "down.weight";
  const double deviation = to_residual ? 0.02 / std::sqrt(2.0 * s.layers) : 0.02;
  const std::uint64_t stream = stream_id(full_name);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    tensor[i] = static_cast<float>(deviation * nearly_normal(s.seed, stream, i));
  }
}

}  // namespace

std::string segment_name(SegmentKind kind, std::uint32_t layer) {
  switch (kind) {
    case SegmentKind::embed: return "embed";
    case SegmentKind::attention: return fmt::format("layers.{}.attention", layer);
    case SegmentKind::mlp: return fmt::format("layers.{}.mlp", layer);
    case SegmentKind::head: return "head";
  }
  return "?";
}

std::vector<NamedShape> tensors_of(SegmentKind kind, const SegmentScalars& dimensions) {
  const auto list = [](const auto& tensors) { return std::vector<NamedShape>(tensors.begin(), tensors.end()); };
  switch (kind) {
    case SegmentKind::embed: return list(embed_tensors(dimensions));
    case SegmentKind::attention: return list(attention_tensors(dimensions));
    case SegmentKind::mlp: return list(mlp_tensors(dimensions));
    case SegmentKind::head: return list(head_tensors(dimensions));
  }
  return {};
}

Result<Value> initial_parameters_of(std::span<const std::byte> scalars, std::span<Value>) {
  const auto s = scalars_as<InitialScalars>(scalars);
  const auto kind = static_cast<SegmentKind>(s.kind);
  const std::vector<NamedShape> tensors = tensors_of(kind, s.dimensions);
  std::int64_t count = 0;
  for (const NamedShape& tensor : tensors) count += whole_grains(tensor.shape.count());
  MutableValue out(DType::f32, Shape{count});
  const std::span<float> flat = out.as<float>();
  std::fill(flat.begin(), flat.end(), 0.0F);
  std::size_t offset = 0;
  for (const NamedShape& tensor : tensors) {
    fill(flat.subspan(offset, static_cast<std::size_t>(tensor.shape.count())), tensor.name,
         fmt::format("{}.{}", segment_name(kind, s.layer), tensor.name), s);
    offset += static_cast<std::size_t>(whole_grains(tensor.shape.count()));
  }
  return std::move(out).freeze();
}

}  // namespace firedrill
