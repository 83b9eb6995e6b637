// The MLP segment: x + dropout(down(silu(gate(norm(x))) * up(norm(x)))), gate and up as one weight.
#include "engine/model/dropout.h"
#include "engine/model/gate.h"
#include "engine/model/kernels.h"
#include "engine/model/mixed.h"
#include "engine/model/norm.h"

namespace firedrill {
namespace {

struct MlpForward {
  MlpForward(const SegmentScalars& s, const Value& parameters, const Value& input)
      : p(parameters.as<float>(), mlp_tensors(s)),
        width(s.width),
        hidden(s.hidden),
        n(input.count() / s.width),
        norm(input.as<float>().data(), n, p[0], p[1], static_cast<DType>(s.dtype)),
        gate_up_weight(p[2].data(), 2 * hidden, width),
        down_weight(p[3].data(), width, hidden),
        gate_up_buffer(n * 2 * hidden),
        gated_buffer(n * hidden),
        gate_up{gate_up_buffer.data(), n, 2 * hidden},
        gated{gated_buffer.data(), n, hidden} {
    matmul(gate_up, norm.out(), gate_up_weight.t());
    gate_rows(gate_up, gated);
    round_operand(s, gated.data, n * hidden);
  }

  Slots<const float, 4> p;
  std::int64_t width;
  std::int64_t hidden;
  std::int64_t n;  // tokens
  LayerNorm norm;
  ConstMatrix gate_up_weight;
  ConstMatrix down_weight;
  Scratch gate_up_buffer;
  Scratch gated_buffer;
  Matrix gate_up;  // [n, 2 * hidden]: gate, then up
  Matrix gated;    // [n, hidden]
};

}  // namespace

Result<Value> mlp_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<SegmentScalars>(scalars);
  const MlpForward f(s, inputs[0], inputs[1]);
  MutableValue out(DType::f32, inputs[1].shape());
  const std::span<float> projected = out.as<float>();
  matmul({projected.data(), f.n, f.width}, f.gated, f.down_weight.t());
  Dropout(s).apply_and_add(projected, inputs[1].as<float>(), projected);
  return std::move(out).freeze();
}

Result<Value> mlp_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<SegmentScalars>(scalars);
  const MlpForward f(s, inputs[0], inputs[1]);
  MutableValue parameters(DType::f32, inputs[0].shape());
  const Slots g(parameters.as<float>(), mlp_tensors(s));
  g.clear_padding();

  const DroppedGradient d_projected(s, inputs[2].as<float>());
  const ConstMatrix dp(d_projected.data(), f.n, f.width);
  matmul({g[3].data(), f.width, f.hidden}, dp.t(), f.gated);
  const Scratch d_gated(f.n * f.hidden);
  matmul({d_gated.data(), f.n, f.hidden}, dp, f.down_weight);
  gate_rows_backward(f.gate_up, d_gated.data());
  round_operand(s, f.gate_up.data, f.n * 2 * f.hidden);
  matmul({g[2].data(), 2 * f.hidden, f.width}, ConstMatrix(f.gate_up).t(), f.norm.out());
  const Scratch d_norm(f.n * f.width);
  matmul({d_norm.data(), f.n, f.width}, f.gate_up, f.gate_up_weight);
  MutableValue dx(DType::f32, inputs[1].shape());
  f.norm.backward(d_norm.data(), inputs[2].as<float>().data(), g[0], g[1], dx.as<float>().data());
  return Value::pack({std::move(dx).freeze(), std::move(parameters).freeze()});
}

}  // namespace firedrill
