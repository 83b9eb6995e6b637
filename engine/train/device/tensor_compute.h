// TensorCompute: runs the kernels of a training step as operations of LibTorch on tensors of one device, so that
// activations, gradients, parameters and moments stay there from kernel to kernel (engine/base/value.h). What has no
// such form here (checkpoints, input, models cut into tp or cp lanes, experts, 16 bits) runs on the host as ever.
//
// The same kernels on the same shapes, and every sum over lanes the same tree: on one device every layout of a job
// gives the same bits, though other ones than on a host. Operations that LibTorch knows to vary from run to run are
// refused (deterministic algorithms are on); what they would be needed for is written without them. The CPU is a
// device, too: that is how the tests compare these kernels with the host's own.
//
// Threads: one call at a time; fetching a Value's bytes, any. Errors: those of the kernels; no_space and unavailable
// from the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "engine/seam/compute.h"

namespace firedrill {

// How many GPUs LibTorch can use.
int gpu_count();
// Turns deterministic algorithms on for the process; before the first TensorCompute. `device`: "cpu", "cuda:0".
void pin_device_numerics(const at::Device& device);
// "cuda/NVIDIA H200 sm_90", for the numerics key.
std::string device_key(const at::Device& device);

class TensorCompute final : public Compute {
 public:
  TensorCompute(at::Device device, Compute& host) : device_(device), host_(host) {}
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override;

  // Calls that ran on the device, and on the host.
  std::int64_t runs_on_device() const { return on_device_; }
  std::int64_t runs_on_host() const { return on_host_; }

 private:
  at::Device device_;
  Compute& host_;
  std::int64_t on_device_ = 0;
  std::int64_t on_host_ = 0;
};

}  // namespace firedrill
