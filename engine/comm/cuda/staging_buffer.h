// StagingBuffer: memory of the current GPU that grows when more is asked for.
#pragma once

#include <cstddef>
#include <utility>

#include "engine/comm/cuda/cuda_result.h"

namespace firedrill {

class StagingBuffer {
 public:
  StagingBuffer() = default;
  StagingBuffer(StagingBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  StagingBuffer& operator=(StagingBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~StagingBuffer() {
    if (data_) cudaFree(data_);
  }

  // At least `size` bytes; what was in it may be gone. Errors: no_space, unavailable.
  Status reserve(std::size_t size) {
    if (size <= size_) return {};
    if (data_) FD_CUDA(cudaFree(std::exchange(data_, nullptr)));
    size_ = 0;
    FD_CUDA(cudaMalloc(&data_, size));
    size_ = size;
    return {};
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace firedrill
