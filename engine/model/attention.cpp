// The attention segment: x + dropout(out(attend(qkv(norm(x))))), causal, q, k and v as one weight.
#include <algorithm>
#include <cmath>

#include "engine/model/arithmetic.h"
#include "engine/model/dropout.h"
#include "engine/model/kernels.h"
#include "engine/model/mixed.h"
#include "engine/model/norm.h"

namespace firedrill {
namespace {

// The two orders of the same numbers: [rows, sequence, parts, heads, size] as a projection gives them, and
// [parts, rows, heads, sequence, size] as attention wants them.
struct HeadOrder {
  std::int64_t rows;
  std::int64_t sequence;
  std::int64_t parts;
  std::int64_t heads;
  std::int64_t size;

  template <class Copy>
  void each(Copy copy) const {
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t head = 0; head < heads; ++head) {
          for (std::int64_t t = 0; t < sequence; ++t) {
            copy((((row * sequence + t) * parts + part) * heads + head) * size,
                 (((part * rows + row) * heads + head) * sequence + t) * size);
          }
        }
      }
    }
  }
  void to_heads(const float* tokens, float* out) const {
    each([&](std::int64_t token, std::int64_t head) { std::copy_n(tokens + token, size, out + head); });
  }
  void to_tokens(const float* by_head, float* out) const {
    each([&](std::int64_t token, std::int64_t head) { std::copy_n(by_head + head, size, out + token); });
  }
};

struct AttentionForward {
  AttentionForward(const SegmentScalars& s, const Value& parameters, const Value& input)
      : p(parameters.as<float>(), attention_tensors(s)),
        width(s.width),
        sequence(s.sequence),
        rows(input.shape()[0]),
        heads(s.heads),
        size(width / heads),
        n(rows * sequence),
        batch(rows * heads),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)))),
        norm(input.as<float>().data(), n, p[0], p[1], static_cast<DType>(s.dtype)),
        qkv_weight(p[2].data(), 3 * width, width),
        out_weight(p[3].data(), width, width),
        qkv_buffer(3 * n * width),
        weights_buffer(batch * sequence * sequence),
        attended_buffer(n * width),
        weights{weights_buffer.data(), sequence, sequence, batch},
        attended{attended_buffer.data(), n, width} {
    FD_CHECK(input.shape() == (Shape{rows, sequence, width}), "the input is [rows, sequence, width]");
    const Scratch by_token(3 * n * width);
    matmul({by_token.data(), n, 3 * width}, norm.out(), qkv_weight.t());
    round_operand(s, by_token.data(), 3 * n * width);
    order(3).to_heads(by_token.data(), qkv_buffer.data());
    matmul(weights, part(0), part(1).t());
    causal_softmax();
    round_operand(s, weights.data, batch * sequence * sequence);
    const Scratch by_head(n * width);
    matmul({by_head.data(), sequence, size, batch}, weights, part(2));
    order(1).to_tokens(by_head.data(), attended.data);
    round_operand(s, attended.data, n * width);
  }

  HeadOrder order(std::int64_t parts) const { return {rows, sequence, parts, heads, size}; }

  // q, k or v: [batch, sequence, size].
  ConstMatrix part(std::int64_t i) const { return {qkv_buffer.data() + i * n * width, sequence, size, batch}; }

  // Row t of a matrix of weights looks at keys 0 to t; the rest is zero.
  template <class Row>
  void each_row(Row row) const {
    for (std::int64_t i = 0; i < batch * sequence; ++i) row(i * sequence, i % sequence + 1);
  }

  void causal_softmax() const {
    each_row([this](std::int64_t begin, std::int64_t keys) {
      float* w = weights.data + begin;
      softmax_in_place(w, keys, scale);
      std::fill(w + keys, w + sequence, 0.0F);
    });
  }

  // Overwrites the gradient of the weights with that of the scores.
  void softmax_backward(float* d_weights) const {
    each_row([this, d_weights](std::int64_t begin, std::int64_t keys) {
      const float* w = weights.data + begin;
      float* d = d_weights + begin;
      const float dot = sum_of(
          keys, [=](std::int64_t i) { return load(w + i) * load(d + i); }, [=](std::int64_t i) { return w[i] * d[i]; });
      for (std::int64_t i = 0; i < keys; ++i) d[i] = (d[i] - dot) * w[i] * scale;
      std::fill(d + keys, d + sequence, 0.0F);
    });
  }

  // From the gradient of `attended` to that of the projection to q, k and v, [n, 3 * width].
  void attend_backward(const SegmentScalars& s, const float* d_attended, float* d_by_token) const {
    const Scratch d_out_buffer(n * width);
    order(1).to_heads(d_attended, d_out_buffer.data());
    round_operand(s, d_out_buffer.data(), n * width);
    const ConstMatrix d_out(d_out_buffer.data(), sequence, size, batch);
    const Scratch d_qkv(3 * n * width);
    const auto d_part = [&](std::int64_t i) { return Matrix{d_qkv.data() + i * n * width, sequence, size, batch}; };
    matmul(d_part(2), ConstMatrix(weights).t(), d_out);
    const Scratch d_scores_buffer(batch * sequence * sequence);
    const Matrix d_scores{d_scores_buffer.data(), sequence, sequence, batch};
    matmul(d_scores, d_out, part(2).t());
    softmax_backward(d_scores.data);
    round_operand(s, d_scores.data, batch * sequence * sequence);
    matmul(d_part(0), d_scores, part(1));
    matmul(d_part(1), ConstMatrix(d_scores).t(), part(0));
    order(3).to_tokens(d_qkv.data(), d_by_token);
    round_operand(s, d_by_token, 3 * n * width);
  }

  Slots<const float, 4> p;
  std::int64_t width;
  std::int64_t sequence;
  std::int64_t rows;
  std::int64_t heads;
  std::int64_t size;   // of a head
  std::int64_t n;      // tokens
  std::int64_t batch;  // rows * heads
  float scale;
  LayerNorm norm;
  ConstMatrix qkv_weight;
  ConstMatrix out_weight;
  Scratch qkv_buffer;  // [3, batch, sequence, size]
  Scratch weights_buffer;
  Scratch attended_buffer;
  Matrix weights;   // [batch, sequence, sequence], after softmax
  Matrix attended;  // [n, width]
};

}  // namespace

Result<Value> attention_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<SegmentScalars>(scalars);
  const AttentionForward f(s, inputs[0], inputs[1]);
  MutableValue out(DType::f32, inputs[1].shape());
  const std::span<float> projected = out.as<float>();
  matmul({projected.data(), f.n, f.width}, f.attended, f.out_weight.t());
  Dropout(s).apply_and_add(projected, inputs[1].as<float>(), projected);
  return std::move(out).freeze();
}

Result<Value> attention_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<SegmentScalars>(scalars);
  const AttentionForward f(s, inputs[0], inputs[1]);
  MutableValue parameters(DType::f32, inputs[0].shape());
  const Slots g(parameters.as<float>(), attention_tensors(s));
  g.clear_padding();

  const DroppedGradient d_projected(s, inputs[2].as<float>());
  const ConstMatrix dp(d_projected.data(), f.n, f.width);
  matmul({g[3].data(), f.width, f.width}, dp.t(), f.attended);
  const Scratch d_attended(f.n * f.width);
  matmul({d_attended.data(), f.n, f.width}, dp, f.out_weight);
  const Scratch d_qkv_buffer(f.n * 3 * f.width);
  f.attend_backward(s, d_attended.data(), d_qkv_buffer.data());
  const ConstMatrix d_qkv(d_qkv_buffer.data(), f.n, 3 * f.width);
  matmul({g[2].data(), 3 * f.width, f.width}, d_qkv.t(), f.norm.out());
  const Scratch d_norm(f.n * f.width);
  matmul({d_norm.data(), f.n, f.width}, d_qkv, f.qkv_weight);
  MutableValue dx(DType::f32, inputs[1].shape());
  f.norm.backward(d_norm.data(), inputs[2].as<float>().data(), g[0], g[1], dx.as<float>().data());
  return Value::pack({std::move(dx).freeze(), std::move(parameters).freeze()});
}

}  // namespace firedrill
