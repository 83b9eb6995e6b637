// One tp lane of the head: the logits of its part of the vocabulary, and cross entropy over all lanes. The maximum and
// the sum of exponentials of a token come from trees over the lanes between these kernels.
#include <algorithm>
#include <bit>

#include "engine/model/arithmetic.h"
#include "engine/model/lane_kernels.h"
#include "engine/model/lane_shapes.h"
#include "engine/model/matmul.h"
#include "engine/model/mixed.h"

namespace firedrill {
namespace {

struct LaneLogits {
  LaneLogits(const LaneScalars& s, const Value& parameters, const Value& input)
      : p(parameters.as<float>(), head_lane_tensors(s.vocabulary, s.width, s.tp_lanes)),
        width(s.width),
        vocabulary(s.vocabulary / s.tp_lanes),
        n(input.count() / s.width),
        h(input.as<float>().data(), n, width),
        weight(p[0].data(), vocabulary, width),
        buffer(n * vocabulary),
        logits{buffer.data(), n, vocabulary} {
    matmul(logits, h, weight.t());
  }
  float* row(std::int64_t token) const { return logits.data + token * vocabulary; }

  // Overwrites the logits of `token` with exp(logit - max).
  void exponentiate_row(std::int64_t token, float max) const {
    float* x = row(token);
    by_fours(vocabulary,
             [=](std::int64_t i, auto count) { store(portable_exp(load(x + i, count) - max), x + i, count); });
  }

  Slots<const float, 1> p;
  std::int64_t width;
  std::int64_t vocabulary;  // of the lane
  std::int64_t n;           // tokens
  ConstMatrix h;
  ConstMatrix weight;
  Scratch buffer;
  Matrix logits;
};

// The next token of token `index` of a cp lane, and whether its row counts.
class LaneTargets {
 public:
  LaneTargets(const LaneScalars& s, const Value& tokens, const Value& mask)
      : lane_(s.sequence, s.cp_lanes, s.cp_lane), sequence_(s.sequence), tokens_(tokens.as<std::uint8_t>()) {
    if (mask) mask_ = mask.as<std::uint8_t>();
  }
  std::int64_t at(std::int64_t index) const {
    const std::int64_t row = index / lane_.size;
    return tokens_[static_cast<std::size_t>(row * (sequence_ + 1) + lane_.position(index % lane_.size) + 1)];
  }
  bool present(std::int64_t index) const {
    return mask_.empty() || mask_[static_cast<std::size_t>(index / lane_.size)] != 0;
  }

 private:
  LaneSequence lane_;
  std::int64_t sequence_;
  std::span<const std::uint8_t> tokens_;
  std::span<const std::uint8_t> mask_;
};

}  // namespace

Result<Value> head_lane_max(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const LaneLogits f(scalars_as<LaneScalars>(scalars), inputs[0], inputs[1]);
  MutableValue out(DType::f32, Shape{f.n});
  for (std::int64_t i = 0; i < f.n; ++i) out.as<float>()[static_cast<std::size_t>(i)] = max_of(f.row(i), f.vocabulary);
  return std::move(out).freeze();
}

Result<Value> head_lane_sums(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const LaneLogits f(s, inputs[0], inputs[1]);
  const auto max = inputs[2].as<float>();
  const LaneTargets targets(s, inputs[3], {});
  MutableValue out(DType::f32, Shape{2, f.n});
  float* sums = out.as<float>().data();
  float* logits = sums + f.n;
  for (std::int64_t i = 0; i < f.n; ++i) {
    const std::int64_t target = targets.at(i) - f.vocabulary * s.tp_lane;
    logits[i] = target >= 0 && target < f.vocabulary ? f.row(i)[target] : 0.0F;
    f.exponentiate_row(i, max[static_cast<std::size_t>(i)]);
    sums[i] = sum_of(f.row(i), f.vocabulary);
  }
  return std::move(out).freeze();
}

Result<Value> head_lane_loss(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const auto max = inputs[0].as<float>();
  const auto sums = inputs[1].as<float>();
  const LaneTargets targets(s, inputs[2], inputs[3]);
  double loss = 0;
  for (std::size_t i = 0; i < max.size(); ++i) {
    if (!targets.present(static_cast<std::int64_t>(i))) continue;
    loss += static_cast<double>(max[i]) - static_cast<double>(sums[max.size() + i]) +
            portable_log(static_cast<double>(sums[i]));
  }
  MutableValue out(DType::f32, Shape{1});
  out.as<float>()[0] = static_cast<float>(loss);
  return std::move(out).freeze();
}

Result<Value> head_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const float factor = std::bit_cast<float>(s.factor_bits);
  const LaneLogits f(s, inputs[0], inputs[1]);
  const auto max = inputs[2].as<float>();
  const auto sums = inputs[3].as<float>();
  const LaneTargets targets(s, inputs[4], inputs[5]);
  for (std::int64_t i = 0; i < f.n; ++i) {
    float* x = f.row(i);
    if (!targets.present(i)) {
      std::fill_n(x, f.vocabulary, 0.0F);
      continue;
    }
    f.exponentiate_row(i, max[static_cast<std::size_t>(i)]);
    const float inverse = 1.0F / sums[static_cast<std::size_t>(i)];
    for (std::int64_t v = 0; v < f.vocabulary; ++v) x[v] *= inverse;
    const std::int64_t target = targets.at(i) - f.vocabulary * s.tp_lane;
    if (target >= 0 && target < f.vocabulary) x[target] -= 1.0F;
    for (std::int64_t v = 0; v < f.vocabulary; ++v) x[v] *= factor;
  }
  round_operand(s, f.logits.data, f.n * f.vocabulary);
  MutableValue parameters(DType::f32, inputs[0].shape());
  const Slots g(parameters.as<float>(), head_lane_tensors(s.vocabulary, s.width, s.tp_lanes));
  g.clear_padding();
  matmul({g[0].data(), f.vocabulary, f.width}, ConstMatrix(f.logits).t(), f.h);
  MutableValue dh(DType::f32, inputs[1].shape());
  matmul({dh.as<float>().data(), f.n, f.width}, f.logits, f.weight);
  return Value::pack({std::move(dh).freeze(), std::move(parameters).freeze()});
}

}  // namespace firedrill
