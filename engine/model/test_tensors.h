// For the tests of this folder: reproducible noise, and how far our numbers are from LibTorch's.
#pragma once

#include <stdexcept>

#include "engine/base/rng.h"
#include "engine/model/tensor_view.h"

namespace firedrill {

template <class T>
T get(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(describe(result.error()));
  return *std::move(result);
}

inline Value noise(const Shape& shape, std::uint64_t stream, float amplitude) {
  MutableValue out(DType::f32, shape);
  std::uint64_t counter = 0;
  for (float& x : out.as<float>()) {
    const auto word = static_cast<std::int32_t>(static_cast<std::uint32_t>(Stream(3, stream).at(counter++)));
    x = static_cast<float>(word) * (amplitude / 2147483648.0F);
  }
  return std::move(out).freeze();
}

inline Value random_tokens(std::int64_t rows, std::int64_t columns) {
  MutableValue tokens(DType::u8, Shape{rows, columns});
  std::uint64_t counter = 0;
  for (std::uint8_t& token : tokens.as<std::uint8_t>()) {
    token = static_cast<std::uint8_t>(Stream(3, 99).below(256, counter++));
  }
  return std::move(tokens).freeze();
}

inline at::Tensor tensor_of(const Value& value) {
  const auto sizes = value.shape().sizes();
  return tensor_view(value.as<float>(), {sizes.data(), sizes.size()}).clone();
}

// The largest difference, measured against the largest number of the reference.
inline double relative_distance(std::span<const float> ours, const at::Tensor& reference) {
  const at::Tensor flat = reference.detach().contiguous().view({-1});
  const at::Tensor mine = tensor_view(ours, {static_cast<std::int64_t>(ours.size())});
  return ((mine - flat).abs().max() / flat.abs().max().clamp_min(1e-20)).item<double>();
}

// What sums of fp32 in another order may differ by.
inline constexpr double tolerance = 2e-5;

}  // namespace firedrill
