#include "engine/train/device/tensor_kernels.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "engine/model/dropout.h"
#include "engine/model/shapes.h"
#include "engine/seam/compute.h"
#include "engine/train/adamw_scalars.h"

namespace firedrill {
namespace {

using Tensors = std::vector<at::Tensor>;

// The tensors of a segment as views of its flat parameters.
template <std::size_t n>
std::array<at::Tensor, n> views_of(const at::Tensor& flat, const std::array<NamedShape, n>& tensors) {
  std::array<at::Tensor, n> views;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto sizes = tensors[i].shape.sizes();
    const std::int64_t count = tensors[i].shape.count();
    views[i] = flat.narrow(0, offset, count).view({sizes.data(), sizes.size()});
    offset += whole_grains(count);
  }
  return views;
}

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, 1e-5);
}

// What dropout multiplies by, drawn on the host: the same mask as everywhere.
at::Tensor drop(const SegmentScalars& s, const at::Tensor& x) {
  const Dropout dropout(s);
  if (!dropout.active()) return x;
  at::Tensor factors = at::ones(x.sizes(), at::kFloat);
  const std::span<float> numbers(factors.mutable_data_ptr<float>(), static_cast<std::size_t>(factors.numel()));
  dropout.apply(numbers, numbers);
  return x * factors.to(x.device());
}

// Rows of the unit matrix in place of a look-up: its gradient is a matmul then, and not a sum in any order.
at::Tensor unit_rows(const at::Tensor& ids, std::int64_t classes) {
  const at::Tensor all = at::arange(classes, at::TensorOptions().dtype(at::kByte).device(ids.device()));
  return (ids.unsqueeze(-1) == all).to(at::kFloat);
}

at::Tensor embed(const SegmentScalars& s, const at::Tensor& flat, const at::Tensor& tokens) {
  const auto p = views_of(flat, embed_tensors(s));
  return drop(s, at::matmul(unit_rows(tokens.narrow(1, 0, s.sequence), s.vocabulary), p[0]) + p[1]);
}

at::Tensor attention(const SegmentScalars& s, const at::Tensor& flat, const at::Tensor& x) {
  const auto p = views_of(flat, attention_tensors(s));
  const std::int64_t size = s.width / s.heads;
  const at::Tensor qkv = at::matmul(norm(x, p[0], p[1]), p[2].t())
                             .view({x.size(0), s.sequence, 3, s.heads, size})
                             .permute({2, 0, 3, 1, 4});
  const at::Tensor scores = at::matmul(qkv[0], qkv[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(size));
  const at::Tensor future = at::ones({s.sequence, s.sequence}, x.options().dtype(at::kBool)).triu(1);
  const at::Tensor weights = at::softmax(scores.masked_fill(future, -INFINITY), -1);
  const at::Tensor attended = at::matmul(weights, qkv[2]).permute({0, 2, 1, 3}).reshape(x.sizes());
  return x + drop(s, at::matmul(attended, p[3].t()));
}

at::Tensor mlp(const SegmentScalars& s, const at::Tensor& flat, const at::Tensor& x) {
  const auto p = views_of(flat, mlp_tensors(s));
  const Tensors gate_up = at::matmul(norm(x, p[0], p[1]), p[2].t()).chunk(2, -1);
  return x + drop(s, at::matmul(at::silu(gate_up[0]) * gate_up[1], p[3].t()));
}

// The sum over the tokens of present rows. `mask` may be undefined: all are present.
at::Tensor loss(const SegmentScalars& s, const at::Tensor& flat, const at::Tensor& x, const at::Tensor& tokens,
                const at::Tensor& mask) {
  const auto p = views_of(flat, head_tensors(s));
  const at::Tensor likely = at::log_softmax(at::matmul(norm(x, p[0], p[1]), p[2].t()), -1);
  const at::Tensor of_token = (likely * unit_rows(tokens.narrow(1, 1, s.sequence), s.vocabulary)).sum(-1);
  const at::Tensor present = mask.defined() ? of_token * mask.ne(0).to(at::kFloat).unsqueeze(-1) : of_token;
  return -present.sum().view({1});
}

// The gradients of input and parameters; the graph lives as long as this call.
template <class Function>
Tensors gradients(const at::Tensor& flat, const at::Tensor& x, const at::Tensor& d_out, Function function) {
  const at::AutoGradMode recording(true);
  const at::Tensor p = flat.detach().requires_grad_();
  if (!x.is_floating_point()) return {torch::autograd::grad({function(p, x)}, {p}, {d_out})};
  const at::Tensor in = x.detach().requires_grad_();
  return torch::autograd::grad({function(p, in)}, {in, p}, {d_out});
}

template <at::Tensor (*segment)(const SegmentScalars&, const at::Tensor&, const at::Tensor&)>
Tensors forward(std::span<const std::byte> scalars, std::span<const at::Tensor> inputs) {
  return {segment(scalars_as<SegmentScalars>(scalars), inputs[0], inputs[1])};
}

template <at::Tensor (*segment)(const SegmentScalars&, const at::Tensor&, const at::Tensor&)>
Tensors backward(std::span<const std::byte> scalars, std::span<const at::Tensor> inputs) {
  const auto s = scalars_as<SegmentScalars>(scalars);
  return gradients(inputs[0], inputs[1], inputs[2],
                   [&s](const at::Tensor& p, const at::Tensor& x) { return segment(s, p, x); });
}

Tensors head_forward(std::span<const std::byte> scalars, std::span<const at::Tensor> inputs) {
  return {loss(scalars_as<SegmentScalars>(scalars), inputs[0], inputs[1], inputs[2], inputs[3])};
}

Tensors head_backward(std::span<const std::byte> scalars, std::span<const at::Tensor> inputs) {
  const auto s = scalars_as<SegmentScalars>(scalars);
  const at::Tensor factor = at::full({1}, std::bit_cast<float>(s.factor_bits), inputs[1].options());
  return gradients(inputs[0], inputs[1], factor,
                   [&](const at::Tensor& p, const at::Tensor& x) { return loss(s, p, x, inputs[2], inputs[3]); });
}

Tensors add(std::span<const std::byte>, std::span<const at::Tensor> inputs) { return {inputs[0] + inputs[1]}; }

// The trees of grad_norm.cpp with the same additions, so they have its bits.
at::Tensor grains(const at::Tensor& flat) {
  at::Tensor sums = flat.square().view({-1, grain / 4, 4});
  for (std::int64_t half = grain / 8; half > 0; half /= 2) sums = sums.narrow(1, 0, half) + sums.narrow(1, half, half);
  const at::Tensor lanes = sums.squeeze(1);
  return (lanes.select(1, 0) + lanes.select(1, 2)) + (lanes.select(1, 1) + lanes.select(1, 3));
}

at::Tensor tree(at::Tensor level) {
  while (level.size(0) > 1) {
    const std::int64_t pairs = level.size(0) / 2;
    const at::Tensor two = level.narrow(0, 0, 2 * pairs).view({pairs, 2});
    const at::Tensor sums = two.select(1, 0) + two.select(1, 1);
    level = level.size(0) % 2 == 0 ? sums : at::cat({sums, level.narrow(0, 2 * pairs, 1)});
  }
  return level;
}

Tensors sum_of_squares(std::span<const std::byte>, std::span<const at::Tensor> inputs) {
  return {tree(grains(inputs[0]))};
}
Tensors sums_of_grains(std::span<const std::byte>, std::span<const at::Tensor> inputs) { return {grains(inputs[0])}; }
Tensors sum_over_grains(std::span<const std::byte>, std::span<const at::Tensor> inputs) { return {tree(inputs[0])}; }

// With the additions and multiplications of the host's kernel in its order.
Tensors adamw(std::span<const std::byte> scalars, std::span<const at::Tensor> inputs) {
  const auto s = scalars_as<AdamWScalars>(scalars);
  const auto number = [](std::uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); };
  const at::Tensor gradient = inputs[3] * number(s.gradient_scale);
  const at::Tensor mean = inputs[1] * number(s.beta1) + gradient * number(s.one_minus_beta1);
  const at::Tensor square = inputs[2] * number(s.beta2) + gradient * gradient * number(s.one_minus_beta2);
  const at::Tensor change = mean / (square.sqrt() / number(s.correction2_root) + number(s.epsilon));
  at::Tensor kept = inputs[0].clone();
  const at::Tensor ranges = inputs[4].to(at::kCPU);
  const std::span<const std::int64_t> ends(ranges.const_data_ptr<std::int64_t>(),
                                           static_cast<std::size_t>(ranges.numel()));
  for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
    const std::int64_t begin = std::clamp<std::int64_t>(ends[i] - static_cast<std::int64_t>(s.offset), 0, kept.numel());
    const std::int64_t end =
        std::clamp<std::int64_t>(ends[i + 1] - static_cast<std::int64_t>(s.offset), begin, kept.numel());
    kept.narrow(0, begin, end - begin).mul_(number(s.keep));
  }
  return {kept - change * number(s.step_size), mean, square};
}

struct Named {
  std::string_view kernel;
  TensorKernel function;
};

constexpr std::array all = {Named{"model.embed.forward", forward<embed>},
                            Named{"model.embed.backward", backward<embed>},
                            Named{"model.attention.forward", forward<attention>},
                            Named{"model.attention.backward", backward<attention>},
                            Named{"model.mlp.forward", forward<mlp>},
                            Named{"model.mlp.backward", backward<mlp>},
                            Named{"model.head.forward", head_forward},
                            Named{"model.head.backward", head_backward},
                            Named{"comm.add", add},
                            Named{"train.adamw", adamw},
                            Named{"train.sum_of_squares", sum_of_squares},
                            Named{"train.sums_of_grains", sums_of_grains},
                            Named{"train.sum_over_grains", sum_over_grains}};

}  // namespace

TensorKernel tensor_kernel_of(std::string_view kernel) {
  for (const Named& named : all) {
    if (named.kernel == kernel) return named.function;
  }
  return nullptr;
}

}  // namespace firedrill
