// Tokens to the places of experts and back, and an expert's backward.
#include <algorithm>
#include <vector>

#include "engine/model/arithmetic.h"
#include "engine/model/lane_kernels.h"
#include "engine/model/lane_shapes.h"
#include "engine/model/moe_kernels.h"

namespace firedrill {

Result<Value> moe_dispatch(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<MoeScalars>(scalars);
  const Value& x = inputs[0];
  const std::size_t row_size = s.width * size_of(x.dtype());
  const std::int32_t* place = inputs[1].as<std::int32_t>().data();
  std::vector<Value> by_expert;
  for (std::uint32_t expert = 0; expert < s.experts; ++expert) {
    MutableValue rows(x.dtype(), Shape{s.capacity, s.width});
    std::byte* to = rows.bytes().data();
    for (std::uint32_t row = 0; row < s.capacity; ++row, to += row_size) {
      const std::int64_t token = *place++;
      if (token < 0) {
        std::fill_n(to, row_size, std::byte{0});  // zero in every type
      } else {
        std::copy_n(x.bytes().data() + static_cast<std::size_t>(token) * row_size, row_size, to);
      }
    }
    by_expert.push_back(std::move(rows).freeze());
  }
  return Value::pack(by_expert);
}

Result<Value> moe_combine(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<MoeScalars>(scalars);
  const std::int32_t* place = inputs[0].as<std::int32_t>().data();
  const float* gate = inputs[1] ? inputs[1].as<float>().data() : nullptr;
  MutableValue out(DType::f32, Shape{s.rows, s.tokens, s.width});
  const std::span<float> sums = out.as<float>();
  std::fill(sums.begin(), sums.end(), 0.0F);
  for (const Value& rows : inputs[2].parts()) {
    const float* from = rows.as<float>().data();
    for (std::uint32_t row = 0; row < s.capacity; ++row, from += s.width) {
      const float weight = gate ? *gate++ : 1.0F;
      const std::int64_t token = *place++;
      if (token < 0) continue;
      float* to = sums.data() + token * s.width;
      for (std::uint32_t i = 0; i < s.width; ++i) to[i] += weight * from[i];
    }
  }
  return std::move(out).freeze();
}

Result<Value> moe_expert_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<LaneScalars>(scalars);
  const std::int64_t capacity = inputs[1].count() / s.width;
  Value forward_inputs[] = {inputs[0], inputs[1]};
  FD_TRY(const Value y, mlp_lane_forward(scalars, forward_inputs));
  const float* gates = inputs[2].as<float>().data();
  const float* d = inputs[3].as<float>().data();
  MutableValue d_gates(DType::f32, Shape{capacity});
  MutableValue d_y(DType::f32, inputs[1].shape());
  for (std::int64_t row = 0; row < capacity; ++row) {
    const float* of_row = d + row * s.width;
    const float* out = y.as<float>().data() + row * s.width;
    d_gates.as<float>()[static_cast<std::size_t>(row)] = sum_of(
        s.width, [=](std::int64_t i) { return load(of_row + i) * load(out + i); },
        [=](std::int64_t i) { return of_row[i] * out[i]; });
    float* to = d_y.as<float>().data() + row * s.width;
    for (std::uint32_t i = 0; i < s.width; ++i) to[i] = gates[row] * of_row[i];
  }
  Value backward_inputs[] = {inputs[0], inputs[1], std::move(d_y).freeze()};
  FD_TRY(const Value pack, mlp_lane_backward(scalars, backward_inputs));
  return Value::pack({pack[0], std::move(d_gates).freeze(), pack[1]});
}

}  // namespace firedrill
