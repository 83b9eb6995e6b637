// The pre layer norm that attention, MLP and head begin with.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/value.h"
#include "engine/model/matmul.h"

namespace firedrill {

class LayerNorm {
 public:
  // `x` is [n, width]; it and the two tensors are borrowed. out() is rounded to `dtype`.
  LayerNorm(const float* x, std::int64_t n, std::span<const float> weight, std::span<const float> bias,
            DType dtype = DType::f32);

  ConstMatrix out() const { return {out_.data(), n_, width_}; }

  // `gradient` is of out(). Writes the gradients of weight, bias and x; adds `residual` ([n, width], may be null) to
  // the last.
  void backward(const float* gradient, const float* residual, std::span<float> d_weight, std::span<float> d_bias,
                float* dx) const;

 private:
  const float* x_;
  std::int64_t n_;
  std::int64_t width_;
  const float* weight_;
  Scratch out_;
  Scratch mean_;
  Scratch inverse_deviation_;
};

}  // namespace firedrill
