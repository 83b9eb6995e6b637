// The compute of a job's device, and what a result computed there may be compared with.
#pragma once

#include <memory>
#include <string>

#include "engine/job/job.h"
#include "engine/seam/compute.h"

namespace firedrill {

// Why the job's device cannot be had here, with the remedy; empty if it can.
std::string device_trouble(const Job& job);

// How many GPUs there are for the job; for one on CPUs 0, and nothing is touched.
int gpus_for(const Job& job);

// The numerics key of the job on its device (engine/model/numerics.h); of a GPU "libtorch-2.11.0/cuda/NVIDIA H200
// sm_90/<probe digest>", with "/layout" behind it where NCCL adds. Runs the probe.
std::string numerics_key_of(const Job& job);

// Runs kernels on the job's device: directly, or for cuda on GPU `rank` modulo their number. Nothing is touched before
// the first kernel, so a process that only forks may have one.
class JobCompute final : public Compute {
 public:
  explicit JobCompute(const Job& job, int rank = 0) : device_(job.device), rank_(rank) {}
  ~JobCompute() override;
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override;

 private:
  Device device_;
  int rank_;
  DirectCompute host_;
  std::unique_ptr<Compute> gpu_;
};

}  // namespace firedrill
