#include "engine/model/norm.h"

#include <algorithm>
#include <cmath>

#include "engine/base/half.h"
#include "engine/model/arithmetic.h"

namespace firedrill {

LayerNorm::LayerNorm(const float* x, std::int64_t n, std::span<const float> weight, std::span<const float> bias,
                     DType dtype)
    : x_(x),
      n_(n),
      width_(static_cast<std::int64_t>(weight.size())),
      weight_(weight.data()),
      out_(n * width_),
      mean_(n),
      inverse_deviation_(n) {
  const float* w = weight.data();
  const float* b = bias.data();
  const auto count = static_cast<float>(width_);
  for (std::int64_t row = 0; row < n_; ++row) {
    const float* from = x_ + row * width_;
    float* to = out_.data() + row * width_;
    const float mean = sum_of(from, width_) / count;
    const float variance = sum_of(
                               width_,
                               [=](std::int64_t i) {
                                 const Four centred = load(from + i) - mean;
                                 return centred * centred;
                               },
                               [=](std::int64_t i) { return (from[i] - mean) * (from[i] - mean); }) /
                           count;
    const float inverse = 1.0F / std::sqrt(variance + 1e-5F);
    for (std::int64_t i = 0; i < width_; ++i) to[i] = (from[i] - mean) * inverse * w[i] + b[i];
    mean_.data()[row] = mean;
    inverse_deviation_.data()[row] = inverse;
  }
  round_to(dtype, {out_.data(), static_cast<std::size_t>(n_ * width_)});
}

void LayerNorm::backward(const float* gradient, const float* residual, std::span<float> d_weight,
                         std::span<float> d_bias, float* dx) const {
  std::fill(d_weight.begin(), d_weight.end(), 0.0F);
  std::fill(d_bias.begin(), d_bias.end(), 0.0F);
  const Scratch buffers(2 * width_);
  float* __restrict normal = buffers.data();     // (x - mean) / deviation
  float* __restrict d_normal = normal + width_;  // gradient of it
  float* __restrict dw = d_weight.data();
  float* __restrict db = d_bias.data();
  for (std::int64_t row = 0; row < n_; ++row) {
    const float* x = x_ + row * width_;
    const float* dy = gradient + row * width_;
    const float mean = mean_.data()[row];
    const float inverse = inverse_deviation_.data()[row];
    for (std::int64_t i = 0; i < width_; ++i) {
      normal[i] = (x[i] - mean) * inverse;
      d_normal[i] = dy[i] * weight_[i];
      dw[i] += dy[i] * normal[i];
      db[i] += dy[i];
    }
    const float mean_of_d = sum_of(d_normal, width_) / static_cast<float>(width_);
    const float mean_of_product = sum_of(
                                      width_, [=](std::int64_t i) { return load(d_normal + i) * load(normal + i); },
                                      [=](std::int64_t i) { return d_normal[i] * normal[i]; }) /
                                  static_cast<float>(width_);
    float* to = dx + row * width_;
    for (std::int64_t i = 0; i < width_; ++i) {
      to[i] = (d_normal[i] - mean_of_d - normal[i] * mean_of_product) * inverse;
    }
    if (residual) {
      const float* skip = residual + row * width_;
      for (std::int64_t i = 0; i < width_; ++i) to[i] += skip[i];
    }
  }
}

}  // namespace firedrill
