// Values as tensors of LibTorch and back, without copying. A view borrows: the Value must outlive it. Included by
// segment kernels only.
#pragma once

#include <torch/torch.h>

#include <span>

#include "engine/base/value.h"

namespace firedrill {

// A view for reading. LibTorch has no constant tensors: the caller only passes it where operations read.
inline at::Tensor tensor_view(std::span<const float> data, at::IntArrayRef sizes) {
  return at::from_blob(const_cast<float*>(data.data()), sizes, at::TensorOptions().dtype(at::kFloat));
}

inline at::Tensor tensor_view(std::span<float> data, at::IntArrayRef sizes) {
  return at::from_blob(data.data(), sizes, at::TensorOptions().dtype(at::kFloat));
}

inline std::span<float> floats_of(const at::Tensor& tensor) {
  FD_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat, "only a contiguous float tensor is a span");
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

inline void copy_into(const at::Tensor& tensor, std::span<float> out) {
  const std::span<const float> from = floats_of(tensor);
  FD_CHECK(from.size() == out.size(), "{} elements into {}", from.size(), out.size());
  std::copy(from.begin(), from.end(), out.begin());
}

}  // namespace firedrill
