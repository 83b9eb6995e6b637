// What the CUDA runtime and NCCL say, as errors of ours.
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include "engine/base/result.h"

namespace firedrill {

inline Status check_cuda(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return {};
  const Code code = result == cudaErrorMemoryAllocation ? Code::no_space : Code::unavailable;
  return Error{.code = code, .message = fmt::format("{}: {}", call, cudaGetErrorString(result))};
}

// A call on a communicator that does not block may still be in progress: that is no error.
inline Status check_nccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return {};
  const Code code = result == ncclRemoteError ? Code::aborted : Code::unavailable;
  return Error{.code = code,
               .message = fmt::format("{}: {}", call, ncclGetErrorString(result)),
               .hint = "NCCL_DEBUG=INFO makes NCCL say more"};
}

}  // namespace firedrill

#define FD_CUDA(call) FD_TRY_VOID(::firedrill::check_cuda(call, #call))
#define FD_NCCL(call) FD_TRY_VOID(::firedrill::check_nccl(call, #call))
