// The kernels of a model that is cut into lanes; called by LaneModel only. Shapes: `h`, `x` and their gradients are f32
// [rows, tokens, width], where tokens are those of a cp lane, or of one (cp, tp) chunk of it. All take LaneScalars.
// Inputs, in order, and results:
//
//   token forward      parameters, tokens                         -> partial x of a cp lane
//   token backward     parameters, tokens, d x                    -> d parameters
//   position forward   parameters, sum                            -> x of a chunk, dropped out
//   position backward  parameters, d x                            -> pack {d sum, d parameters}
//   norm forward       parameters, x                              -> h
//   norm backward      parameters, x, d h, residual or nothing    -> pack {d x + residual, d parameters}
//   residual forward   x, sum                                     -> x + dropout(sum)
//   residual backward  d x                                        -> d sum
//   qkv forward        parameters, h                              -> pack {q, kv}
//   attend forward     parameters, q, pack of kv by cp lane       -> partial sum
//   attend backward    parameters, q, pack of kv, d sum           -> pack {d q, pack of d kv by cp lane, d parameters}
//   qkv backward       parameters, h, d q, d kv, d parameters     -> pack {d h, d parameters of both}
//   mlp forward        parameters, h                              -> partial sum
//   mlp backward       parameters, h, d sum                       -> pack {d h, d parameters}
//   head max           parameters, h                              -> f32 [tokens of all rows]
//   head sums          parameters, h, max, tokens                 -> f32 [2, tokens]: sums of exp, the target's logit
//   head loss          max, sums, tokens, row mask                -> f32 [1]
//   head backward      parameters, h, max, sums, tokens, row mask -> pack {d h, d parameters}
//   join chunks        chunks of a cp lane in order               -> [rows, tokens, width]
//   take chunk         [rows, tokens, width]                      -> one of tp_lanes chunks
#pragma once

#include "engine/seam/compute.h"

namespace firedrill {

Result<Value> token_lane_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> token_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> position_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> position_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> norm_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> norm_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> residual_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> residual_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> qkv_lane_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> qkv_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> attend_lane_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> attend_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> mlp_lane_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> mlp_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> head_lane_max(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> head_lane_sums(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> head_lane_loss(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> head_lane_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> join_chunks(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> take_chunk(std::span<const std::byte> scalars, std::span<Value> inputs);

}  // namespace firedrill
