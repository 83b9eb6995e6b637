// The head segment: cross entropy of output(norm(x)) against the next token, summed over the present rows. An absent
// row counts for exactly nothing: no loss, and gradients of zero.
#include <bit>

#include "engine/model/kernels.h"
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
        norm(tensor_view(inputs[1].as<float>(), {n, width}), p[0], p[1]),
        weight(tensor_view(p[2], {vocabulary, width})),
        logits(at::mm(norm.out(), weight.t())) {
    FD_CHECK(inputs[2].shape() == (Shape{rows, sequence + 1}), "tokens are [rows, sequence + 1]");
    if (inputs[3]) {
      mask = inputs[3].as<std::uint8_t>();
      FD_CHECK(static_cast<std::int64_t>(mask.size()) == rows, "the row mask is [rows]");
    }
  }
  bool present(std::int64_t row) const { return mask.empty() || mask[static_cast<std::size_t>(row)] != 0; }
  std::int64_t target(std::int64_t row, std::int64_t t) const {
    return tokens[static_cast<std::size_t>(row * (sequence + 1) + t + 1)];
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
  at::Tensor weight;
  at::Tensor logits;  // [n, vocabulary]
};

}  // namespace

Result<Value> head_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const c10::InferenceMode no_graph;
  const HeadForward f(scalars_as<SegmentScalars>(scalars), inputs);
  const at::Tensor log_probabilities = at::_log_softmax(f.logits, -1, false);
  const float* row_of = floats_of(log_probabilities).data();
  double sum = 0;
  for (std::int64_t row = 0; row < f.rows; ++row) {
    for (std::int64_t t = 0; t < f.sequence; ++t, row_of += f.vocabulary) {
      if (f.present(row)) sum -= static_cast<double>(row_of[f.target(row, t)]);
    }
  }
  MutableValue out(DType::f32, Shape{1});
  out.as<float>()[0] = static_cast<float>(sum);
  return std::move(out).freeze();
}

Result<Value> head_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const c10::InferenceMode no_graph;
  const auto s = scalars_as<SegmentScalars>(scalars);
  const float factor = std::bit_cast<float>(s.factor_bits);
  const HeadForward f(s, inputs);
  const at::Tensor d_logits = at::_softmax(f.logits, -1, false);
  float* d = floats_of(d_logits).data();
  for (std::int64_t row = 0; row < f.rows; ++row) {
    for (std::int64_t t = 0; t < f.sequence; ++t, d += f.vocabulary) {
      if (!f.present(row)) {
        std::fill_n(d, f.vocabulary, 0.0F);
        continue;
      }
      d[f.target(row, t)] -= 1.0F;
      for (std::int64_t i = 0; i < f.vocabulary; ++i) d[i] *= factor;
    }
  }
  MutableValue parameters(DType::f32, inputs[0].shape());
  const Slots g(parameters.as<float>(), head_tensors(s));
  g.clear_padding();
  at::Tensor d_weight = tensor_view(g[2], {f.vocabulary, f.width});
  at::mm_out(d_weight, d_logits.t(), f.norm.out());
  const at::Tensor dx = f.norm.backward(at::mm(d_logits, f.weight), g[0], g[1]);
  MutableValue input(DType::f32, inputs[1].shape());
  copy_into(dx, input.as<float>());
  return Value::pack({std::move(input).freeze(), std::move(parameters).freeze()});
}

}  // namespace firedrill
