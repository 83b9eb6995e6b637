// The embed segment: token + position, dropout. Plain loops: its backward adds rows in the order of the tokens.
#include "engine/model/dropout.h"
#include "engine/model/kernels.h"
#include "engine/model/shapes.h"

namespace firedrill {
namespace {

struct TokenGrid {
  TokenGrid(const SegmentScalars& s, const Value& tokens)
      : rows(tokens.shape()[0]), sequence(s.sequence), bytes(tokens.as<std::uint8_t>()) {
    FD_CHECK(tokens.shape().rank() == 2 && tokens.shape()[1] == sequence + 1, "tokens are [rows, sequence + 1]");
  }
  std::size_t at(std::int64_t row, std::int64_t t) const {
    return bytes[static_cast<std::size_t>(row * (sequence + 1) + t)];
  }
  std::int64_t rows;
  std::int64_t sequence;
  std::span<const std::uint8_t> bytes;
};

}  // namespace

Result<Value> embed_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<SegmentScalars>(scalars);
  const Slots p(inputs[0].as<float>(), embed_tensors(s));
  const TokenGrid tokens(s, inputs[1]);
  MutableValue out(DType::f32, Shape{tokens.rows, tokens.sequence, s.width});
  float* to = out.as<float>().data();
  for (std::int64_t row = 0; row < tokens.rows; ++row) {
    for (std::int64_t t = 0; t < tokens.sequence; ++t, to += s.width) {
      const float* token = p[0].data() + tokens.at(row, t) * s.width;
      const float* position = p[1].data() + static_cast<std::size_t>(t) * s.width;
      for (std::uint32_t i = 0; i < s.width; ++i) to[i] = token[i] + position[i];
    }
  }
  const Dropout dropout(s);
  if (dropout.active()) dropout.apply(out.as<float>(), out.as<float>());
  return std::move(out).freeze();
}

Result<Value> embed_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<SegmentScalars>(scalars);
  const TokenGrid tokens(s, inputs[1]);
  MutableValue gradient(std::move(inputs[2]));
  const Dropout dropout(s);
  if (dropout.active()) dropout.apply(gradient.as<float>(), gradient.as<float>());
  MutableValue out(DType::f32, Shape{flat_count(embed_tensors(s))});
  const std::span<float> flat = out.as<float>();
  std::fill(flat.begin(), flat.end(), 0.0F);
  const Slots g(flat, embed_tensors(s));
  const float* from = gradient.as<float>().data();
  for (std::int64_t row = 0; row < tokens.rows; ++row) {
    for (std::int64_t t = 0; t < tokens.sequence; ++t, from += s.width) {
      float* token = g[0].data() + tokens.at(row, t) * s.width;
      float* position = g[1].data() + static_cast<std::size_t>(t) * s.width;
      for (std::uint32_t i = 0; i < s.width; ++i) token[i] += from[i];
      for (std::uint32_t i = 0; i < s.width; ++i) position[i] += from[i];
    }
  }
  return std::move(out).freeze();
}

}  // namespace firedrill
