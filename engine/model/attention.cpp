// The attention segment: x + dropout(out(attend(qkv(norm(x))))), causal, q, k and v as one weight.
#include <cmath>
#include <limits>

#include "engine/model/dropout.h"
#include "engine/model/kernels.h"
#include "engine/model/norm.h"

namespace firedrill {
namespace {

// [rows, sequence, parts, heads, size] <-> [parts, rows, heads, sequence, size].
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
            const std::int64_t by_token = (((row * sequence + t) * parts + part) * heads + head) * size;
            const std::int64_t by_head = (((part * rows + row) * heads + head) * sequence + t) * size;
            copy(by_token, by_head);
          }
        }
      }
    }
  }
  void to_heads(const float* tokens, float* by_head_out) const {
    each([&](std::int64_t token, std::int64_t head) { std::copy_n(tokens + token, size, by_head_out + head); });
  }
  void to_tokens(const float* by_head_in, float* tokens) const {
    each([&](std::int64_t token, std::int64_t head) { std::copy_n(by_head_in + head, size, tokens + token); });
  }
};

struct AttentionForward {
  AttentionForward(const SegmentScalars& s, const Value& parameters, const Value& input)
      : p(parameters.as<float>(), attention_tensors(s)),
        width(s.width),
        heads(s.heads),
        sequence(s.sequence),
        rows(input.shape()[0]),
        size(width / heads),
        n(rows * sequence),
        scale(1.0 / std::sqrt(static_cast<double>(size))),
        norm(tensor_view(input.as<float>(), {n, width}), p[0], p[1]),
        qkv_weight(tensor_view(p[2], {3 * width, width})),
        out_weight(tensor_view(p[3], {width, width})) {
    FD_CHECK(input.shape() == (Shape{rows, sequence, width}), "the input is [rows, sequence, width]");
    const at::Tensor by_token = at::mm(norm.out(), qkv_weight.t());
    const at::Tensor by_head = at::empty({3, rows * heads, sequence, size}, by_token.options());
    order(3).to_heads(floats_of(by_token).data(), floats_of(by_head).data());
    q = by_head.select(0, 0);
    k = by_head.select(0, 1);
    v = by_head.select(0, 2);
    const at::Tensor scores = at::baddbmm(causal_mask(), q, k.transpose(1, 2), 1, scale);
    weights = at::_softmax(scores, -1, false);
    const at::Tensor attended_by_head = at::bmm(weights, v);
    attended = at::empty({n, width}, by_token.options());
    order(1).to_tokens(floats_of(attended_by_head).data(), floats_of(attended).data());
  }

  HeadOrder order(std::int64_t parts) const { return {rows, sequence, parts, heads, size}; }

  at::Tensor causal_mask() const {
    at::Tensor mask = at::zeros({sequence, sequence}, norm.out().options());
    float* to = floats_of(mask).data();
    for (std::int64_t i = 0; i < sequence; ++i) {
      std::fill(to + i * sequence + i + 1, to + (i + 1) * sequence, -std::numeric_limits<float>::infinity());
    }
    return mask;
  }

  // From the gradient of `attended` to that of qkv, [n, 3 * width].
  at::Tensor attend_backward(const at::Tensor& d_attended) const {
    const at::Tensor d_out = at::empty({rows * heads, sequence, size}, d_attended.options());
    order(1).to_heads(floats_of(d_attended).data(), floats_of(d_out).data());
    const at::Tensor by_head = at::empty({3, rows * heads, sequence, size}, d_attended.options());
    at::Tensor dq = by_head.select(0, 0);
    at::Tensor dk = by_head.select(0, 1);
    at::Tensor dv = by_head.select(0, 2);
    at::bmm_out(dv, weights.transpose(1, 2), d_out);
    const at::Tensor d_weights = at::bmm(d_out, v.transpose(1, 2));
    const at::Tensor d_scores = at::_softmax_backward_data(d_weights, weights, -1, at::kFloat);
    at::bmm_out(dq, d_scores, k);
    at::bmm_out(dk, d_scores.transpose(1, 2), q);
    const std::span<float> scaled = floats_of(by_head).first(static_cast<std::size_t>(2 * n * width));
    for (float& x : scaled) x *= static_cast<float>(scale);
    const at::Tensor by_token = at::empty({n, 3 * width}, d_attended.options());
    order(3).to_tokens(floats_of(by_head).data(), floats_of(by_token).data());
    return by_token;
  }

  Slots<const float, 4> p;
  std::int64_t width;
  std::int64_t heads;
  std::int64_t sequence;
  std::int64_t rows;
  std::int64_t size;  // of a head
  std::int64_t n;     // tokens
  double scale;
  LayerNorm norm;
  at::Tensor qkv_weight;
  at::Tensor out_weight;
  at::Tensor q;  // [rows * heads, sequence, size], as k and v
  at::Tensor k;
  at::Tensor v;
  at::Tensor weights;   // [rows * heads, sequence, sequence], after softmax
  at::Tensor attended;  // [n, width]
};

}  // namespace

Result<Value> attention_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const c10::InferenceMode no_graph;
  const auto s = scalars_as<SegmentScalars>(scalars);
  const AttentionForward f(s, inputs[0], inputs[1]);
  MutableValue out(DType::f32, inputs[1].shape());
  at::Tensor projected = tensor_view(out.as<float>(), {f.n, f.width});
  at::mm_out(projected, f.attended, f.out_weight.t());
  Dropout(s).apply_and_add(out.as<float>(), inputs[1].as<float>(), out.as<float>());
  return std::move(out).freeze();
}

Result<Value> attention_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const c10::InferenceMode no_graph;
  const auto s = scalars_as<SegmentScalars>(scalars);
  const AttentionForward f(s, inputs[0], inputs[1]);
  MutableValue parameters(DType::f32, inputs[0].shape());
  const Slots g(parameters.as<float>(), attention_tensors(s));
  g.clear_padding();

  const std::span<const float> out_gradient = inputs[2].as<float>();
  MutableValue dropped(DType::f32, Shape{});
  at::Tensor d_projected = tensor_view(out_gradient, {f.n, f.width});
  const Dropout dropout(s);
  if (dropout.active()) {
    dropped = MutableValue(DType::f32, inputs[2].shape());
    dropout.apply(out_gradient, dropped.as<float>());
    d_projected = tensor_view(dropped.as<float>(), {f.n, f.width});
  }
  at::Tensor d_out_weight = tensor_view(g[3], {f.width, f.width});
  at::mm_out(d_out_weight, d_projected.t(), f.attended);
  const at::Tensor d_qkv = f.attend_backward(at::mm(d_projected, f.out_weight));
  at::Tensor d_qkv_weight = tensor_view(g[2], {3 * f.width, f.width});
  at::mm_out(d_qkv_weight, d_qkv.t(), f.norm.out());
  const at::Tensor dx = f.norm.backward(at::mm(d_qkv, f.qkv_weight), g[0], g[1]);

  MutableValue input(DType::f32, inputs[1].shape());
  const std::span<const float> from = floats_of(dx);
  const std::span<float> to = input.as<float>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = out_gradient[i] + from[i];
  return Value::pack({std::move(input).freeze(), std::move(parameters).freeze()});
}

}  // namespace firedrill
