// The mixture of experts the ordinary way: every expert runs on every token, and a matrix of gates, zero where a token
// was not taken, adds them up. Differentiable by autograd. Tests only, like reference_model.h.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "engine/job/job.h"

namespace firedrill {

struct ReferenceExperts {
  at::Tensor router;                // [experts, width]
  std::vector<at::Tensor> gate_up;  // [2 * hidden, width]
  std::vector<at::Tensor> down;     // [width, hidden]
};

struct ReferenceMixture {
  at::Tensor out;      // [tokens, width]
  at::Tensor balance;  // the source lane's balance loss, times its present tokens
  at::Tensor kept;     // [tokens, experts]: 1 where a token has a place
};

// `h`: [tokens, width], the tokens of one source lane. `present`: [tokens] of 1 and 0.
inline ReferenceMixture reference_mixture(const ModelSpec& spec, const ReferenceExperts& weights, const at::Tensor& h,
                                          std::int64_t capacity, const at::Tensor& present) {
  const at::Tensor logits = at::linear(h, weights.router);
  const at::Tensor probabilities = at::softmax(logits, -1);
  const auto [largest, chosen] = at::topk(logits, spec.top_k, -1);
  const at::Tensor weight = spec.top_k == 1 ? probabilities.gather(-1, chosen) : at::softmax(largest, -1);
  const at::Tensor here = present.unsqueeze(-1);
  const at::Tensor choices = at::zeros_like(logits).scatter(-1, chosen, 1.0) * here;
  const at::Tensor kept = choices * (choices.cumsum(0) <= static_cast<double>(capacity)).to(at::kFloat);
  const at::Tensor gates = at::zeros_like(logits).scatter(-1, chosen, weight) * kept;
  at::Tensor out = at::zeros_like(h);
  for (std::int64_t e = 0; e < spec.experts; ++e) {
    const auto i = static_cast<std::size_t>(e);
    const auto parts = at::linear(h, weights.gate_up[i]).chunk(2, -1);
    out = out + gates.narrow(1, e, 1) * at::linear(at::silu(parts[0]) * parts[1], weights.down[i]);
  }
  const at::Tensor tokens = present.sum().clamp_min(1.0);
  const at::Tensor share = choices.sum(0) / (tokens * static_cast<double>(spec.top_k));
  const at::Tensor mean = (probabilities * here).sum(0) / tokens;
  return {.out = out,
          .balance = spec.balance_loss * static_cast<double>(spec.experts) * (share * mean).sum() * present.sum(),
          .kept = kept.detach()};
}

}  // namespace firedrill
