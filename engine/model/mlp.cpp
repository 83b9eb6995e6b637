// The MLP segment: x + dropout(down(silu(gate(norm(x))) * up(norm(x)))), gate and up as one weight.
#include "engine/model/dropout.h"
#include "engine/model/kernels.h"
#include "engine/model/norm.h"

namespace firedrill {
namespace {

struct MlpForward {
  MlpForward(const SegmentScalars& s, const Value& parameters, const Value& input)
      : p(parameters.as<float>(), mlp_tensors(s)),
        width(s.width),
        hidden(s.hidden),
        n(input.count() / s.width),
        norm(tensor_view(input.as<float>(), {n, width}), p[0], p[1]),
        gate_up_weight(tensor_view(p[2], {2 * hidden, width})),
        down_weight(tensor_view(p[3], {width, hidden})),
        gate_up(at::mm(norm.out(), gate_up_weight.t())),
        sigmoid(at::sigmoid(gate_up.narrow(1, 0, hidden))),
        gated(at::empty({n, hidden}, gate_up.options())) {
    const float* gu = floats_of(gate_up).data();
    const float* sg = sigmoid.const_data_ptr<float>();
    float* out = floats_of(gated).data();
    for (std::int64_t i = 0; i < n; ++i, gu += 2 * hidden, sg += hidden, out += hidden) {
      for (std::int64_t j = 0; j < hidden; ++j) out[j] = gu[j] * sg[j] * gu[hidden + j];
    }
  }

  // Turns the gradient of `gated` into that of `gate_up`, which is overwritten.
  at::Tensor gate_backward(const at::Tensor& gated_gradient) {
    float* gu = floats_of(gate_up).data();
    const float* sg = sigmoid.const_data_ptr<float>();
    const float* da = gated_gradient.const_data_ptr<float>();
    for (std::int64_t i = 0; i < n; ++i, gu += 2 * hidden, sg += hidden, da += hidden) {
      for (std::int64_t j = 0; j < hidden; ++j) {
        const float gate = gu[j];
        const float up = gu[hidden + j];
        gu[j] = da[j] * up * (sg[j] * (1.0F + gate * (1.0F - sg[j])));
        gu[hidden + j] = da[j] * (gate * sg[j]);
      }
    }
    return gate_up;
  }

  Slots<const float, 4> p;
  std::int64_t width;
  std::int64_t hidden;
  std::int64_t n;  // tokens
  LayerNorm norm;
  at::Tensor gate_up_weight;
  at::Tensor down_weight;
  at::Tensor gate_up;  // [n, 2 * hidden]: gate, then up
  at::Tensor sigmoid;  // of the gate
  at::Tensor gated;    // [n, hidden]
};

}  // namespace

Result<Value> mlp_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const c10::InferenceMode no_graph;
  const auto s = scalars_as<SegmentScalars>(scalars);
  const MlpForward f(s, inputs[0], inputs[1]);
  MutableValue out(DType::f32, inputs[1].shape());
  at::Tensor projected = tensor_view(out.as<float>(), {f.n, f.width});
  at::mm_out(projected, f.gated, f.down_weight.t());
  Dropout(s).apply_and_add(out.as<float>(), inputs[1].as<float>(), out.as<float>());
  return std::move(out).freeze();
}

Result<Value> mlp_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const c10::InferenceMode no_graph;
  const auto s = scalars_as<SegmentScalars>(scalars);
  MlpForward f(s, inputs[0], inputs[1]);
  MutableValue parameters(DType::f32, inputs[0].shape());
  const Slots g(parameters.as<float>(), mlp_tensors(s));
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
  at::Tensor d_down = tensor_view(g[3], {f.width, f.hidden});
  at::mm_out(d_down, d_projected.t(), f.gated);
  const at::Tensor d_gate_up = f.gate_backward(at::mm(d_projected, f.down_weight));
  at::Tensor d_weight = tensor_view(g[2], {2 * f.hidden, f.width});
  at::mm_out(d_weight, d_gate_up.t(), f.norm.out());
  const at::Tensor dx = f.norm.backward(at::mm(d_gate_up, f.gate_up_weight), g[0], g[1]);

  MutableValue input(DType::f32, inputs[1].shape());
  const std::span<const float> from = floats_of(dx);
  const std::span<float> to = input.as<float>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = out_gradient[i] + from[i];
  return Value::pack({std::move(input).freeze(), std::move(parameters).freeze()});
}

}  // namespace firedrill
