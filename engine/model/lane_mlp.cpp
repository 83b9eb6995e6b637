// One tp lane of the MLP: its hidden units, from the normed input of a cp lane to a partial sum.
#include "engine/model/gate.h"
#include "engine/model/lane_kernels.h"
#include "engine/model/lane_shapes.h"
#include "engine/model/matmul.h"
#include "engine/model/mixed.h"

namespace firedrill {
namespace {

struct LaneMlp {
  LaneMlp(const LaneScalars& s, const Value& parameters, const Value& input)
      : p(parameters.as<float>(), mlp_lane_tensors(s.width, s.hidden, s.tp_lanes)),
        width(s.width),
        hidden(s.hidden / s.tp_lanes),
        n(input.count() / s.width),
        h(input.as<float>().data(), n, width),
        gate_up_weight(p[0].data(), 2 * hidden, width),
        down_weight(p[1].data(), width, hidden),
        gate_up_buffer(n * 2 * hidden),
        gated_buffer(n * hidden),
        gate_up{gate_up_buffer.data(), n, 2 * hidden},
        gated{gated_buffer.data(), n, hidden} {
    matmul(gate_up, h, gate_up_weight.t());
    gate_rows(gate_up, gated);
    round_operand(s, gated.data, n * hidden);
  }

  Slots<const float, 2> p;
  std::int64_t width;
  std::int64_t hidden;  // of the lane
  std::int64_t n;       // tokens
  ConstMatrix h;
  ConstMatrix gate_up_weight;
  ConstMatrix down_weight;
  Scratch gate_up_buffer;
  Scratch gated_buffer;
  Matrix gate_up;
  Matrix gated;
};

}  // namespace

Result<Value> mlp_lane_forward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const LaneMlp f(scalars_as<LaneScalars>(scalars), inputs[0], inputs[1]);
  MutableValue out(DType::f32, inputs[1].shape());
  matmul({out.as<float>().data(), f.n, f.width}, f.gated, f.down_weight.t());
  return std::move(out).freeze();
}

Result<Value> mlp_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const LaneMlp f(s, inputs[0], inputs[1]);
  MutableValue parameters(DType::f32, inputs[0].shape());
  const Slots g(parameters.as<float>(), mlp_lane_tensors(s.width, s.hidden, s.tp_lanes));
  g.clear_padding();
  const ConstMatrix d(inputs[2].as<float>().data(), f.n, f.width);
  matmul({g[1].data(), f.width, f.hidden}, d.t(), f.gated);
  const Scratch d_gated(f.n * f.hidden);
  matmul({d_gated.data(), f.n, f.hidden}, d, f.down_weight);
  gate_rows_backward(f.gate_up, d_gated.data());
  round_operand(s, f.gate_up.data, f.n * 2 * f.hidden);
  matmul({g[0].data(), 2 * f.hidden, f.width}, ConstMatrix(f.gate_up).t(), f.h);
  MutableValue dh(DType::f32, inputs[1].shape());
  matmul({dh.as<float>().data(), f.n, f.width}, f.gate_up, f.gate_up_weight);
  return Value::pack({std::move(dh).freeze(), std::move(parameters).freeze()});
}

}  // namespace firedrill
