#include "engine/train/device/job_compute.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "engine/model/numerics.h"
#include "engine/train/device/tensor_compute.h"

namespace firedrill {
namespace {

std::unique_ptr<Compute> make_gpu(int rank, Compute& host) {
  const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(rank % gpu_count()));
  pin_device_numerics(device);
  return std::make_unique<TensorCompute>(device, host);
}

}  // namespace

std::string device_trouble(const Job& job) {
  if (job.device == Device::cpu || gpu_count() > 0) return {};
#ifdef FIREDRILL_CUDA
  return "device is cuda, and there is no GPU here (or its driver does not answer: nvidia-smi tells); device: cpu runs "
         "anywhere";
#else
  return "device is cuda, and this firedrill was built without it: build the preset cuda, or give device: cpu";
#endif
}

int gpus_for(const Job& job) { return job.device == Device::cpu ? 0 : gpu_count(); }

std::string numerics_key_of(const Job& job) {
  if (job.device == Device::cpu) return numerics_key(job.numerics);
  if (!device_trouble(job).empty()) return "none: the device is not here";
  DirectCompute host;
  const std::unique_ptr<Compute> gpu = make_gpu(0, host);
  return fmt::format("libtorch-{}/{}/{}{}", TORCH_VERSION, device_key(at::Device(at::kCUDA, 0)),
                     numerics_probe(*gpu).hex(), job.collectives == Reduction::native ? "/layout" : "");
}

JobCompute::~JobCompute() = default;

Result<Value> JobCompute::run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) {
  if (device_ == Device::cpu) return host_.run(kernel, scalars, inputs);
  if (!gpu_) gpu_ = make_gpu(rank_, host_);
  return gpu_->run(kernel, scalars, inputs);
}

}  // namespace firedrill
