// What runs once for each (cp, tp) chunk of the sequence: norm, dropout and residual; and the movement between chunks
// and the cp lane they are of.
#include <algorithm>

#include "engine/model/dropout.h"
#include "engine/model/lane_kernels.h"
#include "engine/model/lane_shapes.h"
#include "engine/model/norm.h"

namespace firedrill {

Result<Value> norm_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const Slots p(inputs[0].as<float>(), norm_tensors(s.width));
  const std::int64_t n = inputs[1].count() / s.width;
  const LayerNorm norm(inputs[1].as<float>().data(), n, p[0], p[1]);
  MutableValue out(DType::f32, inputs[1].shape());
  std::copy_n(norm.out().data, out.as<float>().size(), out.as<float>().data());
  return std::move(out).freeze();
}

Result<Value> norm_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const Slots p(inputs[0].as<float>(), norm_tensors(s.width));
  const std::int64_t n = inputs[1].count() / s.width;
  const LayerNorm norm(inputs[1].as<float>().data(), n, p[0], p[1]);
  MutableValue parameters(DType::f32, inputs[0].shape());
  const Slots g(parameters.as<float>(), norm_tensors(s.width));
  g.clear_padding();
  MutableValue dx(DType::f32, inputs[1].shape());
  const float* residual = inputs[3] ? inputs[3].as<float>().data() : nullptr;
  norm.backward(inputs[2].as<float>().data(), residual, g[0], g[1], dx.as<float>().data());
  return Value::pack({std::move(dx).freeze(), std::move(parameters).freeze()});
}

Result<Value> residual_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  MutableValue out(std::move(inputs[1]));
  Dropout(s).apply_and_add(out.as<float>(), inputs[0].as<float>(), out.as<float>());
  return std::move(out).freeze();
}

Result<Value> residual_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  MutableValue out(DType::f32, inputs[0].shape());
  Dropout(s).apply(inputs[0].as<float>(), out.as<float>());
  return std::move(out).freeze();
}

Result<Value> join_chunks(std::span<const std::byte>, std::span<Value> inputs) {
  const Shape& shape = inputs[0].shape();
  const std::size_t run = static_cast<std::size_t>(shape[1] * shape[2]) * size_of(inputs[0].dtype());
  MutableValue out(inputs[0].dtype(), Shape{shape[0], shape[1] * static_cast<std::int64_t>(inputs.size()), shape[2]});
  std::byte* to = out.bytes().data();
  for (std::size_t row = 0; row < static_cast<std::size_t>(shape[0]); ++row) {
    for (const Value& chunk : inputs) {
      FD_CHECK(chunk.shape() == shape && chunk.dtype() == inputs[0].dtype(), "chunks of one lane differ in size");
      to = std::copy_n(chunk.bytes().data() + row * run, run, to);
    }
  }
  return std::move(out).freeze();
}

Result<Value> take_chunk(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const Shape& shape = inputs[0].shape();
  const std::int64_t tokens = shape[1] / s.tp_lanes;
  const std::size_t run = static_cast<std::size_t>(tokens * shape[2]) * size_of(inputs[0].dtype());
  MutableValue out(inputs[0].dtype(), Shape{shape[0], tokens, shape[2]});
  std::byte* to = out.bytes().data();
  for (std::size_t row = 0; row < static_cast<std::size_t>(shape[0]); ++row) {
    to = std::copy_n(inputs[0].bytes().data() + (row * s.tp_lanes + s.tp_lane) * run, run, to);
  }
  return std::move(out).freeze();
}

}  // namespace firedrill
