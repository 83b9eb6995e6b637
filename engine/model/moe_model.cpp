#include "engine/model/moe_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/model/lane_kernels.h"
#include "engine/model/mixed.h"

namespace firedrill {
namespace {

// What goes into a sum over tp lanes is not rounded: the gradients of an expert's rows and gates, the router's of h.
constexpr Kernel route_kernel =
    make_kernel("model.moe.route.forward", KernelKind::forward, in_precision<moe_route, MoeScalars, Narrowed::none>);
constexpr Kernel route_backward_kernel = make_kernel("model.moe.route.backward", KernelKind::backward,
                                                     in_precision<moe_route_backward, MoeScalars, Narrowed::second>);
constexpr Kernel dispatch_kernel = make_kernel("model.moe.dispatch", KernelKind::other, moe_dispatch);
constexpr Kernel combine_kernel = make_kernel("model.moe.combine", KernelKind::other, moe_combine);
constexpr Kernel expert_kernel =
    make_kernel("model.moe.expert.forward", KernelKind::forward,
                in_precision<mlp_lane_forward, LaneScalars, Narrowed::none>, WorkKind::expert);
constexpr Kernel expert_backward_kernel =
    make_kernel("model.moe.expert.backward", KernelKind::backward,
                in_precision<moe_expert_backward, LaneScalars, Narrowed::third>, WorkKind::expert);

}  // namespace

std::int64_t expert_capacity(const ModelSpec& model, std::int64_t tokens) {
  const double even = static_cast<double>(model.top_k) * static_cast<double>(tokens) / model.experts;
  const auto capacity = static_cast<std::int64_t>(std::ceil(std::min(model.capacity_factor * even, 1e9)));
  return std::clamp<std::int64_t>(capacity, 1, tokens);
}

MoeModel::MoeModel(const Job& job, Compute& compute)
    : spec_(job.model), tp_lanes_(static_cast<std::uint32_t>(job.lanes.tp)), compute_(compute) {
  if (spec_.experts == 0) return;
  const int tokens = spec_.sequence / job.lanes.cp;
  scalars_ = {
      .width = static_cast<std::uint32_t>(spec_.width),
      .experts = static_cast<std::uint32_t>(spec_.experts),
      .top_k = static_cast<std::uint32_t>(spec_.top_k),
      .capacity = static_cast<std::uint32_t>(expert_capacity(spec_, std::int64_t{job.batch.lane_micro_batch} * tokens)),
      .rows = static_cast<std::uint32_t>(job.batch.lane_micro_batch),
      .tokens = static_cast<std::uint32_t>(tokens),
      .dtype = static_cast<std::uint32_t>(dtype_of(job.precision.parameters))};
}

LaneScalars MoeModel::lane_scalars() const {
  return {.width = scalars_.width,
          .hidden = static_cast<std::uint32_t>(spec_.hidden_size()),
          .tp_lanes = tp_lanes_,
          .dtype = scalars_.dtype};
}

Result<MoeModel::Routed> MoeModel::route(const Value& parameters, const Value& h, const Value& mask) const {
  FD_TRY(const Value pack, run_kernel(compute_, route_kernel, scalars_, {parameters, h, mask}));
  return Routed{.places = pack[0], .gates = pack[1]};
}

Result<Value> MoeModel::route_backward(const Value& parameters, const Value& h, const Value& mask, Value d_gates,
                                       float factor) const {
  MoeScalars scalars = scalars_;
  scalars.balance_bits = std::bit_cast<std::uint32_t>(static_cast<float>(spec_.balance_loss));
  scalars.factor_bits = std::bit_cast<std::uint32_t>(factor);
  Value inputs[] = {parameters, h, mask, std::move(d_gates)};
  return run_kernel(compute_, route_backward_kernel, scalars, inputs);
}

Result<Value> MoeModel::dispatch(const Value& x, const Value& places) const {
  return run_kernel(compute_, dispatch_kernel, scalars_, {x, places});
}

Result<Value> MoeModel::combine(const Value& places, const Value& gates, Value out) const {
  Value inputs[] = {places, gates, std::move(out)};
  return run_kernel(compute_, combine_kernel, scalars_, inputs);
}

Result<Value> MoeModel::expert(const Value& parameters, Value x) const {
  Value inputs[] = {parameters, std::move(x)};
  return run_kernel(compute_, expert_kernel, lane_scalars(), inputs);
}

Result<Value> MoeModel::expert_backward(const Value& parameters, Value x, Value gates, Value d_out) const {
  Value inputs[] = {parameters, std::move(x), std::move(gates), std::move(d_out)};
  return run_kernel(compute_, expert_backward_kernel, lane_scalars(), inputs);
}

Value MoeModel::gates_of(const Value& gates, int expert) const {
  return gates.slice(std::int64_t{scalars_.capacity} * expert, scalars_.capacity);
}

}  // namespace firedrill
