#include "engine/train/device/tensor_compute.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <torch/torch.h>

#ifdef FIREDRILL_CUDA
#include <cuda_runtime_api.h>
#endif

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/train/device/tensor_kernels.h"

namespace firedrill {
namespace {

class TensorBuffer final : public DeviceBuffer {
 public:
  explicit TensorBuffer(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  const at::Tensor& tensor() const { return tensor_; }
  void fetch(std::span<std::byte> host) const override {
    const at::Tensor here = tensor_.to(at::kCPU);  // waits for the device's stream
    FD_CHECK(here.nbytes() == host.size(), "a tensor of {} bytes for a Value of {}", here.nbytes(), host.size());
    if (!host.empty()) std::memcpy(host.data(), here.const_data_ptr(), host.size());
  }

 private:
  at::Tensor tensor_;
};

std::optional<at::ScalarType> scalar_type_of(DType dtype) {
  switch (dtype) {
    case DType::u8: return at::kByte;
    case DType::i32: return at::kInt;
    case DType::i64: return at::kLong;
    case DType::f32: return at::kFloat;
    case DType::bf16: return at::kBFloat16;
    case DType::f16: return at::kHalf;
    case DType::pack: return std::nullopt;
  }
  return std::nullopt;
}

DType dtype_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return DType::f32;
  FD_CHECK(tensor.scalar_type() == at::kLong, "a kernel gave a tensor of {}", c10::toString(tensor.scalar_type()));
  return DType::i64;
}

// The Value as a tensor there: the one that it is already, or a copy.
at::Tensor tensor_of(const Value& value, const at::Device& device) {
  if (const auto* there = dynamic_cast<const TensorBuffer*>(value.device_buffer())) return there->tensor();
  const auto sizes = value.shape().sizes();
  const auto options = at::TensorOptions().dtype(*scalar_type_of(value.dtype()));
  // LibTorch has no constant tensors; this one is only copied from.
  void* data = const_cast<std::byte*>(value.bytes().data());
  return at::from_blob(data, {sizes.data(), sizes.size()}, options)
      .to(device, *scalar_type_of(value.dtype()), false, true);
}

Value value_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  const Shape shape(std::span(whole.sizes().data(), whole.sizes().size()));
  return Value::on_device(dtype_of(whole), shape, std::make_unique<TensorBuffer>(whole));
}

std::string_view first_line(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

// No pack among the inputs, and none of 16 bits: what a product reads would have to be rounded as the host's kernels
// do.
bool all_are_buffers(std::span<const Value> inputs) {
  for (const Value& input : inputs) {
    if (input && (input.is_pack() || input.dtype() == DType::bf16 || input.dtype() == DType::f16)) return false;
  }
  return true;
}

}  // namespace

int gpu_count() {
#ifdef FIREDRILL_CUDA
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
#else
  return 0;
#endif
}

void pin_device_numerics(const at::Device& device) {
  at::globalContext().setDeterministicAlgorithms(true, false);
  if (!device.is_cuda()) return;
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setBenchmarkCuDNN(false);
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);  // else cuBLAS may choose another order from run to run
}

std::string device_key(const at::Device& device) {
#ifdef FIREDRILL_CUDA
  if (device.is_cuda()) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device.index()) == cudaSuccess) {
      return fmt::format("cuda/{} sm_{}{}", properties.name, properties.major, properties.minor);
    }
  }
#endif
  return device.str();
}

Result<Value> TensorCompute::run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) {
  const TensorKernel on_device = tensor_kernel_of(kernel.name);
  if (!on_device || !all_are_buffers(inputs)) {
    ++on_host_;
    return host_.run(kernel, scalars, inputs);
  }
  ++on_device_;
  try {
    std::vector<at::Tensor> tensors;
    for (Value& input : inputs) {
      tensors.push_back(input ? tensor_of(input, device_) : at::Tensor());
      input = Value();
    }
    std::vector<Value> results;
    for (const at::Tensor& result : on_device(scalars, tensors)) results.push_back(value_of(result));
    return results.size() == 1 ? results[0] : Value::pack(results);
  } catch (const c10::OutOfMemoryError& full) {
    return Error{.code = Code::no_space,
                 .message = fmt::format("{} on {}: {}", kernel.name, device_.str(), first_line(full)),
                 .hint = "fewer rows in a lane's micro-batch, recompute: layer or more ZeRO need less memory"};
  } catch (const c10::Error& failure) {
    return Error{.code = Code::unavailable,
                 .message = fmt::format("{} on {}: {}", kernel.name, device_.str(), first_line(failure))};
  }
}

}  // namespace firedrill
