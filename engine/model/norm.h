// The pre layer norm that attention, MLP and head begin with.
#pragma once

#include "engine/model/tensor_view.h"

namespace firedrill {

struct LayerNorm {
  // `x` is [n, width].
  LayerNorm(const at::Tensor& x, std::span<const float> weight, std::span<const float> bias)
      : x_(x), width_(x.size(1)), weight_(tensor_view(weight, {width_})), bias_(tensor_view(bias, {width_})) {
    std::tie(out_, mean_, rstd_) = at::native_layer_norm(x_, {width_}, weight_, bias_, 1e-5);
  }
  const at::Tensor& out() const { return out_; }

  // Writes the gradients of weight and bias; returns that of x.
  at::Tensor backward(const at::Tensor& gradient, std::span<float> weight, std::span<float> bias) const {
    auto [dx, dweight, dbias] =
        at::native_layer_norm_backward(gradient, x_, {width_}, mean_, rstd_, weight_, bias_, {true, true, true});
    copy_into(dweight, weight);
    copy_into(dbias, bias);
    return dx;
  }

 private:
  at::Tensor x_;
  std::int64_t width_;
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor out_;
  at::Tensor mean_;
  at::Tensor rstd_;
};

}  // namespace firedrill
