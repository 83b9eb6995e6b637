#include "engine/model/lane_model.h"

#include <bit>
#include <cmath>

#include "engine/model/lane_kernels.h"
#include "engine/model/mixed.h"

namespace firedrill {
namespace {

constexpr auto forward = KernelKind::forward;
constexpr auto backward = KernelKind::backward;
constexpr auto other = KernelKind::other;

// A partial sum over tp or cp lanes is not rounded before it is added; everything else is.
template <auto run, unsigned narrow>
constexpr auto lanes = in_precision<run, LaneScalars, narrow>;

constexpr Kernel token_forward_kernel =
    make_kernel("model.lane.token.forward", forward, lanes<token_lane_forward, Narrowed::none>, WorkKind::embed);
constexpr Kernel token_backward_kernel =
    make_kernel("model.lane.token.backward", backward, lanes<token_lane_backward, Narrowed::first>, WorkKind::embed);
constexpr Kernel position_forward_kernel =
    make_kernel("model.lane.position.forward", other, lanes<position_forward, Narrowed::first>);
constexpr Kernel position_backward_kernel =
    make_kernel("model.lane.position.backward", other, lanes<position_backward, Narrowed::both>);
constexpr Kernel norm_forward_kernel =
    make_kernel("model.lane.norm.forward", other, lanes<norm_forward, Narrowed::first>);
constexpr Kernel norm_backward_kernel =
    make_kernel("model.lane.norm.backward", other, lanes<norm_backward, Narrowed::both>);
constexpr Kernel residual_forward_kernel =
    make_kernel("model.lane.residual.forward", other, lanes<residual_forward, Narrowed::first>);
constexpr Kernel residual_backward_kernel =
    make_kernel("model.lane.residual.backward", other, lanes<residual_backward, Narrowed::first>);
constexpr Kernel qkv_forward_kernel =
    make_kernel("model.lane.qkv.forward", other, lanes<qkv_lane_forward, Narrowed::both>);
constexpr Kernel qkv_backward_kernel =
    make_kernel("model.lane.qkv.backward", other, lanes<qkv_lane_backward, Narrowed::second>);
constexpr Kernel attend_forward_kernel =
    make_kernel("model.lane.attend.forward", forward, lanes<attend_lane_forward, Narrowed::none>, WorkKind::attention);
constexpr Kernel attend_backward_kernel = make_kernel(
    "model.lane.attend.backward", backward, lanes<attend_lane_backward, Narrowed::first>, WorkKind::attention);
constexpr Kernel mlp_forward_kernel =
    make_kernel("model.lane.mlp.forward", forward, lanes<mlp_lane_forward, Narrowed::none>, WorkKind::mlp);
constexpr Kernel mlp_backward_kernel =
    make_kernel("model.lane.mlp.backward", backward, lanes<mlp_lane_backward, Narrowed::second>, WorkKind::mlp);
constexpr Kernel head_max_kernel =
    make_kernel("model.lane.head.max", forward, lanes<head_lane_max, Narrowed::none>, WorkKind::head);
constexpr Kernel head_sums_kernel = make_kernel("model.lane.head.sums", other, lanes<head_lane_sums, Narrowed::none>);
constexpr Kernel head_loss_kernel = make_kernel("model.lane.head.loss", other, lanes<head_lane_loss, Narrowed::none>);
constexpr Kernel head_backward_kernel =
    make_kernel("model.lane.head.backward", backward, lanes<head_lane_backward, Narrowed::second>, WorkKind::head);
constexpr Kernel join_kernel = make_kernel("model.lane.join", other, join_chunks);
constexpr Kernel take_kernel = make_kernel("model.lane.take", other, take_chunk);

}  // namespace

LaneModel::LaneModel(const Job& job, const Model& model, Compute& compute)
    : spec_(job.model),
      model_(model),
      lanes_(job.lanes),
      dtype_(dtype_of(job.precision.parameters)),
      compute_(compute) {}

LaneScalars LaneModel::scalars() const {
  return {.sequence = static_cast<std::uint32_t>(spec_.sequence),
          .width = static_cast<std::uint32_t>(spec_.width),
          .heads = static_cast<std::uint32_t>(spec_.heads),
          .hidden = static_cast<std::uint32_t>(spec_.hidden_size()),
          .vocabulary = static_cast<std::uint32_t>(spec_.vocabulary),
          .tp_lanes = static_cast<std::uint32_t>(lanes_.tp),
          .cp_lanes = static_cast<std::uint32_t>(lanes_.cp),
          .dtype = static_cast<std::uint32_t>(dtype_)};
}

LaneScalars LaneModel::scalars(LanePlace at) const {
  LaneScalars s = scalars();
  s.tp_lane = static_cast<std::uint32_t>(at.tp);
  s.cp_lane = static_cast<std::uint32_t>(at.cp);
  return s;
}

// One stream for each piece and chunk, whoever computes it.
LaneScalars LaneModel::drawing(LanePlace at, const Piece& piece, const RandomCounter& random) const {
  LaneScalars s = scalars(at);
  if (!model_.segments()[piece.shared].has_dropout) return s;
  const auto chunk = static_cast<std::uint64_t>(at.cp * lanes_.tp + at.tp);
  s.key = random.key + (piece.shared + 1) * 0x9E3779B97F4A7C15ULL + chunk * 0xD1B54A32D192ED03ULL;
  s.counter = random.counter;
  s.drop_threshold = static_cast<std::uint32_t>(std::floor(spec_.dropout * 65536.0 + 0.5));
  s.keep_scale_bits = std::bit_cast<std::uint32_t>(static_cast<float>(1.0 / (1.0 - spec_.dropout)));
  return s;
}

Result<Value> LaneModel::tokens(LanePlace at, const Value& parameters, const Value& tokens) const {
  Value inputs[] = {parameters, tokens};
  return run_kernel(compute_, token_forward_kernel, scalars(at), inputs);
}

Result<Value> LaneModel::tokens_backward(LanePlace at, const Value& parameters, const Value& tokens,
                                         Value gradient) const {
  Value inputs[] = {parameters, tokens, std::move(gradient)};
  return run_kernel(compute_, token_backward_kernel, scalars(at), inputs);
}

Result<Value> LaneModel::positions(LanePlace at, const Piece& piece, const Value& parameters, Value sum,
                                   const RandomCounter& random) const {
  Value inputs[] = {parameters, std::move(sum)};
  return run_kernel(compute_, position_forward_kernel, drawing(at, piece, random), inputs);
}

Result<Value> LaneModel::positions_backward(LanePlace at, const Piece& piece, const Value& parameters, Value gradient,
                                            const RandomCounter& random) const {
  Value inputs[] = {parameters, std::move(gradient)};
  return run_kernel(compute_, position_backward_kernel, drawing(at, piece, random), inputs);
}

Result<Value> LaneModel::norm(const Value& parameters, const Value& x) const {
  Value inputs[] = {parameters, x};
  return run_kernel(compute_, norm_forward_kernel, scalars(), inputs);
}

Result<Value> LaneModel::norm_backward(const Value& parameters, const Value& x, Value gradient, Value residual) const {
  Value inputs[] = {parameters, x, std::move(gradient), std::move(residual)};
  return run_kernel(compute_, norm_backward_kernel, scalars(), inputs);
}

Result<Value> LaneModel::residual(LanePlace at, const Piece& piece, const Value& x, Value sum,
                                  const RandomCounter& random) const {
  Value inputs[] = {x, std::move(sum)};
  return run_kernel(compute_, residual_forward_kernel, drawing(at, piece, random), inputs);
}

Result<Value> LaneModel::residual_backward(LanePlace at, const Piece& piece, const Value& gradient,
                                           const RandomCounter& random) const {
  const LaneScalars s = drawing(at, piece, random);
  if (s.drop_threshold == 0) return gradient;
  Value inputs[] = {gradient};
  return run_kernel(compute_, residual_backward_kernel, s, inputs);
}

Result<Value> LaneModel::qkv(LanePlace at, const Value& parameters, const Value& h) const {
  Value inputs[] = {parameters, h};
  return run_kernel(compute_, qkv_forward_kernel, scalars({.cp = at.cp}), inputs);
}

Result<Value> LaneModel::attend(LanePlace at, const Value& parameters, const Value& q, const Value& all_kv) const {
  Value inputs[] = {parameters, q, all_kv};
  return run_kernel(compute_, attend_forward_kernel, scalars({.cp = at.cp}), inputs);
}

Result<Value> LaneModel::attend_backward(LanePlace at, const Value& parameters, const Value& q, const Value& all_kv,
                                         Value gradient) const {
  Value inputs[] = {parameters, q, all_kv, std::move(gradient)};
  return run_kernel(compute_, attend_backward_kernel, scalars({.cp = at.cp}), inputs);
}

Result<Value> LaneModel::qkv_backward(LanePlace at, const Value& parameters, const Value& h, Value dq, Value d_kv,
                                      Value d_parameters) const {
  Value inputs[] = {parameters, h, std::move(dq), std::move(d_kv), std::move(d_parameters)};
  return run_kernel(compute_, qkv_backward_kernel, scalars({.cp = at.cp}), inputs);
}

Result<Value> LaneModel::mlp(const Value& parameters, const Value& h) const {
  Value inputs[] = {parameters, h};
  return run_kernel(compute_, mlp_forward_kernel, scalars(), inputs);
}

Result<Value> LaneModel::mlp_backward(const Value& parameters, const Value& h, Value gradient) const {
  Value inputs[] = {parameters, h, std::move(gradient)};
  return run_kernel(compute_, mlp_backward_kernel, scalars(), inputs);
}

Result<Value> LaneModel::head_max(const Value& parameters, const Value& h) const {
  Value inputs[] = {parameters, h};
  return run_kernel(compute_, head_max_kernel, scalars(), inputs);
}

Result<Value> LaneModel::head_sums(LanePlace at, const Value& parameters, const Value& h, const Value& max,
                                   const Value& tokens) const {
  Value inputs[] = {parameters, h, max, tokens};
  return run_kernel(compute_, head_sums_kernel, scalars(at), inputs);
}

Result<Value> LaneModel::head_loss(int cp_lane, const Value& max, const Value& sums, const Targets& targets) const {
  Value inputs[] = {max, sums, targets.tokens, targets.row_mask};
  return run_kernel(compute_, head_loss_kernel, scalars({.cp = cp_lane}), inputs);
}

Result<Value> LaneModel::head_backward(LanePlace at, const Value& parameters, const Value& h, const HeadState& state,
                                       const Targets& targets, float factor) const {
  LaneScalars s = scalars(at);
  s.factor_bits = std::bit_cast<std::uint32_t>(factor);
  Value inputs[] = {parameters, h, state.max, state.sums, targets.tokens, targets.row_mask};
  return run_kernel(compute_, head_backward_kernel, s, inputs);
}

Result<Value> LaneModel::join(std::vector<Value> chunks) const {
  if (chunks.size() == 1) return std::move(chunks.front());
  return run_kernel(compute_, join_kernel, scalars(), std::span(chunks));
}

Result<Value> LaneModel::take(const Value& whole, int chunk) const {
  if (lanes_.tp == 1) return whole;
  Value inputs[] = {whole};
  return run_kernel(compute_, take_kernel, scalars({.tp = chunk}), inputs);
}

}  // namespace firedrill
