// The kernels of the segments; called by Model only. Inputs, in order:
//   forward          parameters, input                       -> output
//   backward         parameters, input, gradient of output   -> pack {gradient of input, of parameters}
//   embed backward   parameters, tokens, gradient of output  -> gradient of parameters
//   head forward     parameters, input, tokens, row mask     -> f32 [1], the sum of losses
//   head backward    parameters, input, tokens, row mask     -> pack {gradient of input, of parameters}
// All take SegmentScalars.
#pragma once

#include "engine/seam/compute.h"

namespace firedrill {

Result<Value> embed_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> embed_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> attention_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> attention_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> mlp_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> mlp_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> head_forward(std::span<const std::byte> scalars, std::span<Value> inputs);
Result<Value> head_backward(std::span<const std::byte> scalars, std::span<Value> inputs);
// No inputs; scalars are InitialScalars.
Result<Value> initial_parameters_of(std::span<const std::byte> scalars, std::span<Value> inputs);

}  // namespace firedrill
