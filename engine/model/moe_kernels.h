// The kernels of a mixture of experts; called by MoeModel only. What they work on is one source lane: the tokens of one
// micro-batch of one (dp, cp) lane, [rows, tokens, width] as in lane_kernels.h. An expert has `capacity` places for a
// source lane: `places` i32 [experts, capacity] has the number of the token in each, or -1 where there is none, and
// `gates` f32 [experts, capacity] what its output is multiplied by, or 0.
//
// Routing. Logits are h times the router's weights; a token goes to the top_k experts with the largest, the lower
// number first where two are equal. Its gates are the softmax over these (with top_k 1: the probability among all, or
// the router would learn nothing; Fedus et al., "Switch transformers", JMLR 2022). Tokens take places in their order; a
// token that finds an expert full loses that expert, and its other gates stay. Rows that the mask leaves out go
// nowhere.
//
// Balance. The loss gets balance_loss * present tokens * experts * sum over experts of (share of the choices, before
// dropping) * (mean probability), per source lane (Switch transformers, equation 4): only its gradient is computed.
//
// Inputs, in order, and results:
//   route              router parameters, h, row mask            -> pack {places, gates}
//   route backward     router parameters, h, row mask, d gates   -> pack {d h, d parameters}, balance included
//   dispatch           x [rows, tokens, width], places           -> pack by expert of x [capacity, width]
//   combine            places, gates or nothing, pack by expert  -> [rows, tokens, width], added in expert order
//   expert backward    parameters, x, gates, d out               -> pack {d x, d gates [capacity], d parameters}
// With 16 bits (mixed.h) rows travel as they are, gates and what experts give back stay fp32, and gradients of
// parameters are rounded. All take MoeScalars, expert backward LaneScalars; its `d out` is that of the combined output
// in the expert's places. An expert's forward is the lane kernel of the MLP.
#pragma once

#include "engine/seam/compute.h"

namespace firedrill {

struct MoeScalars {
  std::uint32_t width = 0;
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;
  std::uint32_t capacity = 0;
  std::uint32_t rows = 0;
  std::uint32_t tokens = 0;                                      // of a row, in the lane
  std::uint32_t balance_bits = 0;                                // float
  std::uint32_t factor_bits = 0;                                 // float
  std::uint32_t dtype = static_cast<std::uint32_t>(DType::f32);  // of parameters and activations
};

Result<Value> moe_route(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> moe_route_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> moe_dispatch(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> moe_combine(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> moe_expert_backward(std::span<const std::byte> scalars, std::span<Value> inputs);

}  // namespace firedrill
