// The kernels of a training step as operations of LibTorch: each the same function as the host's kernel of that name,
// up to rounding. Results are new tensors; no input is changed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace firedrill {

using TensorKernel = std::vector<at::Tensor> (*)(std::span<const std::byte> scalars,
                                                 std::span<const at::Tensor> inputs);

// None: the kernel has no such form. One result is a Value, several are a pack.
TensorKernel tensor_kernel_of(std::string_view kernel);

}  // namespace firedrill
