// The head segment: cross entropy of output(norm(x)) against the next token, summed over the present rows. An absent
// row counts for exactly nothing: no loss, and gradients of zero.
#include <algorithm>
#include <bit>

#include "engine/model/arithmetic.h"
#include "engine/model/kernels.h"
#include "engine/model/mixed.h"
#include "engine/model/norm.h"
#include "engine/model/shapes.h"

namespace firedrill {
namespace {

struct HeadForward {
  HeadForward(const SegmentScalars& s, std::span<Value> inputs)
      : p(inputs[0].as<float>(), head_tensors(s)),
        width(s.width),
        vocabulary(s.vocabulary),
        sequence(s.sequence),
        rows(inputs[1].shape()[0]),
        n(rows * sequence),
        tokens(inputs[2].as<std::uint8_t>()),
        norm(inputs[1].as<float>().data(), n, p[0], p[1], static_cast<DType>(s.dtype)),
        weight(p[2].data(), vocabulary, width),
        logits_buffer(n * vocabulary),
        logits{logits_buffer.data(), n, vocabulary} {
    FD_CHECK(inputs[1].shape() == (Shape{rows, sequence, width}), "the input is [rows, sequence, width]");
    FD_CHECK(inputs[2].shape() == (Shape{rows, sequence + 1}), "tokens are [rows, sequence + 1]");
    if (inputs[3]) {
      mask = inputs[3].as<std::uint8_t>();
      FD_CHECK(static_cast<std::int64_t>(mask.size()) == rows, "the row mask is [rows]");
    }
    matmul(logits, norm.out(), weight.t());
  }

  // visit(logits of one token, its target, whether its row is present)
  template <class Visit>
  void each_token(Visit visit) const {
    float* of_token = logits.data;
    for (std::int64_t row = 0; row < rows; ++row) {
      const bool present = mask.empty() || mask[static_cast<std::size_t>(row)] != 0;
      const std::uint8_t* targets = tokens.data() + row * (sequence + 1) + 1;
      for (std::int64_t t = 0; t < sequence; ++t, of_token += vocabulary) visit(of_token, targets[t], present);
    }
  }

  Slots<const float, 3> p;
  std::int64_t width;
  std::int64_t vocabulary;
  std::int64_t sequence;
  std::int64_t rows;
  std::int64_t n;
  std::span<const std::uint8_t> tokens;
  std::span<const std::uint8_t> mask;
  LayerNorm norm;
  ConstMatrix weight;
  Scratch logits_buffer;
  Matrix logits;  // [n, vocabulary]
};

}  // namespace

Result<Value> head_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const HeadForward f(scalars_as<SegmentScalars>(scalars), inputs);
  double sum = 0;
  f.each_token([&](float* logits, std::size_t target, bool present) {
    if (!present) return;
    const auto distance = static_cast<double>(max_of(logits, f.vocabulary)) - static_cast<double>(logits[target]);
    sum += distance + portable_log(static_cast<double>(exponentiate(logits, f.vocabulary, 1.0F)));
  });
  MutableValue out(DType::f32, Shape{1});
  out.as<float>()[0] = static_cast<float>(sum);
  return std::move(out).freeze();
}

Result<Value> head_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<SegmentScalars>(scalars);
  const float factor = std::bit_cast<float>(s.factor_bits);
  const HeadForward f(s, inputs);
  f.each_token([&](float* logits, std::size_t target, bool present) {
    if (!present) {
      std::fill_n(logits, f.vocabulary, 0.0F);
      return;
    }
    softmax_in_place(logits, f.vocabulary, 1.0F);
    logits[target] -= 1.0F;
    for (std::int64_t i = 0; i < f.vocabulary; ++i) logits[i] *= factor;
  });
  round_operand(s, f.logits.data, f.n * f.vocabulary);
  MutableValue parameters(DType::f32, inputs[0].shape());
  const Slots g(parameters.as<float>(), head_tensors(s));
  g.clear_padding();
  matmul({g[2].data(), f.vocabulary, f.width}, ConstMatrix(f.logits).t(), f.norm.out());
  const Scratch d_norm(f.n * f.width);
  matmul({d_norm.data(), f.n, f.width}, f.logits, f.weight);
  MutableValue dx(DType::f32, inputs[1].shape());
  f.norm.backward(d_norm.data(), nullptr, g[0], g[1], dx.as<float>().data());
  return Value::pack({std::move(dx).freeze(), std::move(parameters).freeze()});
}

}  // namespace firedrill
