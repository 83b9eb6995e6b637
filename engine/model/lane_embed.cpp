// Vocabulary-parallel embedding of one lane, and what is done once for a chunk: position and dropout.
#include "engine/model/dropout.h"
#include "engine/model/lane_kernels.h"
#include "engine/model/lane_shapes.h"

namespace firedrill {
namespace {

// Calls visit(row of the lane's token weight or -1, index of the token) for all tokens of the cp lane.
template <class Visit>
void each_token(const LaneScalars& s, const Value& tokens, Visit visit) {
  const std::int64_t rows = tokens.shape()[0];
  FD_CHECK(tokens.shape().rank() == 2 && tokens.shape()[1] == s.sequence + 1, "tokens are [rows, sequence + 1]");
  const auto bytes = tokens.as<std::uint8_t>();
  const LaneSequence lane(s.sequence, s.cp_lanes, s.cp_lane);
  const std::int64_t own = s.vocabulary / s.tp_lanes;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t t = 0; t < lane.size; ++t) {
      const std::int64_t token =
          bytes[static_cast<std::size_t>(row * (s.sequence + 1) + lane.position(t))] - own * s.tp_lane;
      visit(token >= 0 && token < own ? token : -1, row * lane.size + t);
    }
  }
}

}  // namespace

Result<Value> token_lane_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const Slots p(inputs[0].as<float>(), token_lane_tensors(s.vocabulary, s.width, s.tp_lanes));
  const LaneSequence lane(s.sequence, s.cp_lanes, s.cp_lane);
  MutableValue out(DType::f32, Shape{inputs[1].shape()[0], lane.size, s.width});
  each_token(s, inputs[1], [&](std::int64_t token, std::int64_t index) {
    float* to = out.as<float>().data() + index * s.width;
    if (token < 0) {
      std::fill_n(to, s.width, 0.0F);
    } else {
      std::copy_n(p[0].data() + token * s.width, s.width, to);
    }
  });
  return std::move(out).freeze();
}

Result<Value> token_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  MutableValue out(DType::f32, inputs[0].shape());
  std::fill(out.as<float>().begin(), out.as<float>().end(), 0.0F);
  const Slots g(out.as<float>(), token_lane_tensors(s.vocabulary, s.width, s.tp_lanes));
  const float* from = inputs[2].as<float>().data();
  each_token(s, inputs[1], [&](std::int64_t token, std::int64_t index) {
    if (token < 0) return;
    float* to = g[0].data() + token * s.width;
    for (std::uint32_t i = 0; i < s.width; ++i) to[i] += from[index * s.width + i];
  });
  return std::move(out).freeze();
}

namespace {

// Calls visit(row of the position weight, index of the token) for all tokens of the (cp, tp) chunk.
template <class Visit>
void each_position(const LaneScalars& s, const Shape& chunk, Visit visit) {
  const LaneSequence lane(s.sequence, s.cp_lanes, s.cp_lane);
  FD_CHECK(chunk[1] * s.tp_lanes == lane.size, "{} tokens in a chunk of {}", chunk[1], lane.size);
  for (std::int64_t row = 0; row < chunk[0]; ++row) {
    for (std::int64_t t = 0; t < chunk[1]; ++t) {
      visit(lane.position(s.tp_lane * chunk[1] + t), row * chunk[1] + t);
    }
  }
}

}  // namespace

Result<Value> position_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const Slots p(inputs[0].as<float>(), position_tensors(s.sequence, s.width));
  MutableValue out(std::move(inputs[1]));
  float* x = out.as<float>().data();
  each_position(s, out.shape(), [&](std::int64_t position, std::int64_t index) {
    const float* from = p[0].data() + position * s.width;
    for (std::uint32_t i = 0; i < s.width; ++i) x[index * s.width + i] += from[i];
  });
  Dropout(s).apply(out.as<float>(), out.as<float>());
  return std::move(out).freeze();
}

Result<Value> position_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  MutableValue gradient(std::move(inputs[1]));
  Dropout(s).apply(gradient.as<float>(), gradient.as<float>());
  MutableValue out(DType::f32, inputs[0].shape());
  std::fill(out.as<float>().begin(), out.as<float>().end(), 0.0F);
  const Slots g(out.as<float>(), position_tensors(s.sequence, s.width));
  const float* from = gradient.as<float>().data();
  each_position(s, gradient.shape(), [&](std::int64_t position, std::int64_t index) {
    float* to = g[0].data() + position * s.width;
    for (std::uint32_t i = 0; i < s.width; ++i) to[i] += from[index * s.width + i];
  });
  return Value::pack({std::move(gradient).freeze(), std::move(out).freeze()});
}

}  // namespace firedrill
