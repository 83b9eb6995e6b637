// The plain model: the same network as the segments, written the ordinary way with LibTorch's autograd. Tests and
// benchmarks measure the segments against it; nothing else includes it.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/model/dropout.h"
#include "engine/model/tensor_view.h"
#include "engine/model/transformer.h"

namespace firedrill {

class ReferenceModel {
 public:
  // Takes each segment's flat parameters apart into leaf tensors of its own. A tied job comes with the model and the
  // parameters of its untied self: the head's projection is left out.
  ReferenceModel(const Job& job, const Model& model, const std::vector<Value>& parameters) : spec_(job.model) {
    for (const Segment& segment : model.segments()) {
      for (const TensorSpec& tensor : segment.tensors) {
        if (spec_.tied_embedding && tensor.name == "head.output.weight") continue;
        const auto flat = parameters[segment.index].as<float>();
        const auto sizes = tensor.shape.sizes();
        const auto part =
            flat.subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.count()));
        at::Tensor leaf = tensor_view(part, {sizes.data(), sizes.size()}).clone();
        leaf.set_requires_grad(true);
        tensors_[tensor.name] = leaf;
      }
    }
  }

  std::map<std::string, at::Tensor>& tensors() { return tensors_; }
  at::Tensor& tensor(const std::string& name) { return tensors_.at(name); }

  // What dropout multiplies by: a tensor for each segment's name, given by the test; without one nothing is dropped.
  std::map<std::string, at::Tensor> masks;
  // Draws masks by at::dropout instead, as an ordinary trainer does. For benchmarks.
  bool own_dropout = false;

  at::Tensor embed(const at::Tensor& tokens) {
    const at::Tensor ids = tokens.narrow(1, 0, spec_.sequence).to(at::kLong);
    return drop("embed", at::embedding(tensor("embed.token.weight"), ids) + tensor("embed.position.weight"));
  }

  at::Tensor attention(int layer, const at::Tensor& x) {
    const std::string name = "layers." + std::to_string(layer) + ".attention";
    const std::int64_t rows = x.size(0);
    const at::Tensor qkv = at::linear(norm(name, x), tensor(name + ".qkv.weight"))
                               .view({rows, spec_.sequence, 3, spec_.heads, spec_.width / spec_.heads})
                               .permute({2, 0, 3, 1, 4});
    const at::Tensor attended = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0.0, true);
    const at::Tensor merged = attended.transpose(1, 2).reshape({rows, spec_.sequence, spec_.width});
    return x + drop(name, at::linear(merged, tensor(name + ".out.weight")));
  }

  at::Tensor mlp(int layer, const at::Tensor& x) {
    const std::string name = "layers." + std::to_string(layer) + ".mlp";
    const auto parts = at::linear(norm(name, x), tensor(name + ".gate_up.weight")).chunk(2, -1);
    return x + drop(name, at::linear(at::silu(parts[0]) * parts[1], tensor(name + ".down.weight")));
  }

  // The sum of losses over all tokens of rows whose mask is not 0.
  at::Tensor loss(const at::Tensor& x, const at::Tensor& tokens, const at::Tensor& row_mask = {}) {
    const std::string output = spec_.tied_embedding ? "embed.token.weight" : "head.output.weight";
    const at::Tensor logits = at::linear(norm("head", x), tensor(output));
    const at::Tensor targets = tokens.narrow(1, 1, spec_.sequence).to(at::kLong);
    if (!row_mask.defined()) {
      return at::cross_entropy_loss(logits.view({-1, spec_.vocabulary}), targets.reshape(-1), {}, at::Reduction::Sum);
    }
    const at::Tensor each =
        at::cross_entropy_loss(logits.view({-1, spec_.vocabulary}), targets.reshape(-1), {}, at::Reduction::None);
    return (each.view({-1, spec_.sequence}) * row_mask.to(at::kFloat).view({-1, 1})).sum();
  }

  at::Tensor whole(const at::Tensor& tokens) {
    at::Tensor x = embed(tokens);
    for (int layer = 0; layer < spec_.layers; ++layer) x = mlp(layer, attention(layer, x));
    return loss(x, tokens);
  }

 private:
  at::Tensor norm(const std::string& name, const at::Tensor& x) {
    return at::layer_norm(x, {spec_.width}, tensor(name + ".norm.weight"), tensor(name + ".norm.bias"), 1e-5);
  }
  at::Tensor drop(const std::string& name, const at::Tensor& x) {
    if (own_dropout && spec_.dropout > 0) return at::dropout(x, spec_.dropout, true);
    const auto mask = masks.find(name);
    return mask == masks.end() ? x : x * mask->second;
  }

  ModelSpec spec_;
  std::map<std::string, at::Tensor> tensors_;
};

}  // namespace firedrill
