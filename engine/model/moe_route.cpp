// The router of a mixture of experts: which token goes where, with what weight, and the way back.
#include <algorithm>
#include <bit>
#include <vector>

#include "engine/model/arithmetic.h"
#include "engine/model/lane_shapes.h"
#include "engine/model/matmul.h"
#include "engine/model/mixed.h"
#include "engine/model/moe_kernels.h"

namespace firedrill {
namespace {

class Routing {
 public:
  Routing(const MoeScalars& s, const Value& parameters, const Value& h, const Value& mask)
      : s_(s),
        p_(parameters.as<float>(), router_tensors(s.experts, s.width)),
        n_(std::int64_t{s.rows} * s.tokens),
        experts_(s.experts),
        h_(h.as<float>().data(), n_, s.width),
        weight_(p_[0].data(), experts_, s.width),
        probabilities_(n_ * experts_),
        gates_(n_ * experts_),
        chosen_(static_cast<std::size_t>(n_ * experts_)) {
    if (mask) mask_ = mask.as<std::uint8_t>();
    matmul({probabilities_.data(), n_, experts_}, h_, weight_.t());
    for (std::int64_t token = 0; token < n_; ++token) choose(token);
  }

  // Calls visit(token, expert, place) for each choice; place is -1 where the expert is full.
  template <class Visit>
  void each_choice(Visit visit) const {
    std::vector<std::int64_t> taken(static_cast<std::size_t>(experts_));
    for (std::int64_t token = 0; token < n_; ++token) {
      if (!present(token)) continue;
      for (std::int64_t expert = 0; expert < experts_; ++expert) {
        if (!chosen(token, expert)) continue;
        std::int64_t& next = taken[static_cast<std::size_t>(expert)];
        visit(token, expert, next < s_.capacity ? expert * s_.capacity + next++ : -1);
      }
    }
  }

  float gate(std::int64_t token, std::int64_t expert) const { return gates_.data()[token * experts_ + expert]; }

  // From d_logits, which begins as the gradients of the gates by (token, expert), to pack {d h, d parameters}.
  Value backward(const Matrix& d_logits, const Shape& shape) const {
    const std::vector<float> balance = balance_gradients();
    for (std::int64_t token = 0; token < n_; ++token) {
      float* d = d_logits.data + token * experts_;
      if (present(token)) {
        choice_backward(token, d);
        balance_backward(token, balance, d);
      } else {
        std::fill_n(d, experts_, 0.0F);
      }
    }
    MutableValue parameters(DType::f32, Shape{flat_count(router_tensors(s_.experts, s_.width))});
    const Slots g(parameters.as<float>(), router_tensors(s_.experts, s_.width));
    g.clear_padding();
    round_operand(s_, d_logits.data, n_ * experts_);
    matmul({g[0].data(), experts_, h_.columns}, ConstMatrix(d_logits).t(), h_);
    MutableValue dh(DType::f32, shape);
    matmul({dh.as<float>().data(), n_, h_.columns}, d_logits, weight_);
    return Value::pack({std::move(dh).freeze(), std::move(parameters).freeze()});
  }

 private:
  bool present(std::int64_t token) const {
    return mask_.empty() || mask_[static_cast<std::size_t>(token / s_.tokens)] != 0;
  }
  bool chosen(std::int64_t token, std::int64_t expert) const {
    return chosen_[static_cast<std::size_t>(token * experts_ + expert)] != 0;
  }

  // Takes the top_k largest, turns logits into probabilities, and weighs what was taken.
  void choose(std::int64_t token) {
    float* x = probabilities_.data() + token * experts_;
    float* gates = gates_.data() + token * experts_;
    char* taken = chosen_.data() + token * experts_;
    for (std::uint32_t k = 0; k < s_.top_k; ++k) {
      std::int64_t best = -1;
      for (std::int64_t e = 0; e < experts_; ++e) {
        if (!taken[e] && (best < 0 || x[e] > x[best])) best = e;
      }
      taken[best] = 1;
    }
    softmax_in_place(x, experts_, 1.0F);
    float sum = 0;
    for (std::int64_t e = 0; e < experts_; ++e) sum += taken[e] ? x[e] : 0.0F;
    if (s_.top_k == 1) sum = 1;
    for (std::int64_t e = 0; e < experts_; ++e) gates[e] = taken[e] ? x[e] / sum : 0.0F;
  }

  // Of the softmax over the chosen ones; with one of them, over all.
  void choice_backward(std::int64_t token, float* d) const {
    const float* gates = gates_.data() + token * experts_;
    const float* softmax = s_.top_k == 1 ? probabilities_.data() + token * experts_ : gates;
    float mean = 0;
    for (std::int64_t e = 0; e < experts_; ++e) mean += gates[e] * d[e];
    for (std::int64_t e = 0; e < experts_; ++e) d[e] = gates[e] * d[e] - softmax[e] * mean;
  }

  // By expert: the gradient of the balance loss with respect to each present token's probability.
  std::vector<float> balance_gradients() const {
    std::vector<std::int64_t> choices(static_cast<std::size_t>(experts_));
    std::int64_t tokens = 0;
    for (std::int64_t token = 0; token < n_; ++token) tokens += present(token) ? 1 : 0;
    each_choice([&](std::int64_t, std::int64_t expert, std::int64_t) { ++choices[static_cast<std::size_t>(expert)]; });
    std::vector<float> gradients;
    const float weight = std::bit_cast<float>(s_.factor_bits) * std::bit_cast<float>(s_.balance_bits) *
                         static_cast<float>(experts_) / static_cast<float>(s_.top_k);
    for (const std::int64_t count : choices) {
      gradients.push_back(tokens > 0 ? weight * (static_cast<float>(count) / static_cast<float>(tokens)) : 0.0F);
    }
    return gradients;
  }

  void balance_backward(std::int64_t token, const std::vector<float>& gradients, float* d) const {
    const float* p = probabilities_.data() + token * experts_;
    float mean = 0;
    for (std::int64_t e = 0; e < experts_; ++e) mean += p[e] * gradients[static_cast<std::size_t>(e)];
    for (std::int64_t e = 0; e < experts_; ++e) d[e] += p[e] * (gradients[static_cast<std::size_t>(e)] - mean);
  }

  MoeScalars s_;
  Slots<const float, 1> p_;
  std::int64_t n_;  // tokens of all rows
  std::int64_t experts_;
  ConstMatrix h_;
  ConstMatrix weight_;
  Scratch probabilities_;  // [n, experts]
  Scratch gates_;          // [n, experts]; 0 where not chosen
  std::vector<char> chosen_;
  std::span<const std::uint8_t> mask_;
};

}  // namespace

Result<Value> moe_route(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<MoeScalars>(scalars);
  const Routing routing(s, inputs[0], inputs[1], inputs[2]);
  const Shape shape{s.experts, s.capacity};
  MutableValue places(DType::i32, shape);
  MutableValue gates(DType::f32, shape);
  std::fill(places.as<std::int32_t>().begin(), places.as<std::int32_t>().end(), -1);
  std::fill(gates.as<float>().begin(), gates.as<float>().end(), 0.0F);
  routing.each_choice([&](std::int64_t token, std::int64_t expert, std::int64_t place) {
    if (place < 0) return;
    places.as<std::int32_t>()[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(token);
    gates.as<float>()[static_cast<std::size_t>(place)] = routing.gate(token, expert);
  });
  return Value::pack({std::move(places).freeze(), std::move(gates).freeze()});
}

Result<Value> moe_route_backward(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<MoeScalars>(scalars);
  const Routing routing(s, inputs[0], inputs[1], inputs[2]);
  const std::span<const float> d_gates = inputs[3].as<float>();
  const std::int64_t n = std::int64_t{s.rows} * s.tokens;
  const Scratch buffer(n * s.experts);
  std::fill_n(buffer.data(), n * s.experts, 0.0F);
  routing.each_choice([&](std::int64_t token, std::int64_t expert, std::int64_t place) {
    if (place >= 0) buffer.data()[token * s.experts + expert] = d_gates[static_cast<std::size_t>(place)];
  });
  return routing.backward({buffer.data(), n, s.experts}, inputs[1].shape());
}

}  // namespace firedrill
