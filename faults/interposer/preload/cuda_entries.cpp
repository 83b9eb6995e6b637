// The wrapped functions of the CUDA runtime: a call of NCCL that is kept back for a reorder is made before the program
// waits or gives a stream other work. Where nothing is kept back each is one look at a flag.
#include "faults/interposer/preload/cuda_api.h"

#include <cstdint>

#include "faults/interposer/preload/held.h"
#include "faults/interposer/preload/real.h"

using namespace firedrill::interposer;  // allowed: C entry points cannot lie in a namespace

namespace {

template <class Function, class... Arguments>
cudaError_t after_release(Real<Function>& real, const char* name, cudaStream_t stream, Use use,
                          Arguments... arguments) noexcept {
  if (call_is_held()) [[unlikely]]
    program_uses(name, stream, use);
  Function* function = real.get();
  return function ? function(arguments...) : cudaErrorUnknown;
}

}  // namespace

// A function under its own name and under that for a program whose default stream is one for each thread. `stream` is
// the one it is about, if it is about one.
#define FD_WRAP_AS(name, parameters, stream, use, ...)                            \
  extern "C" __attribute__((visibility("default"))) cudaError_t name parameters { \
    static constinit Real<cudaError_t parameters> real(#name, Library::cudart);   \
    return after_release(real, #name, stream, use __VA_OPT__(, ) __VA_ARGS__);    \
  }
#define FD_WRAP(name, suffix, parameters, stream, use, ...)            \
  FD_WRAP_AS(name, parameters, stream, use __VA_OPT__(, ) __VA_ARGS__) \
  FD_WRAP_AS(name##suffix, parameters, stream, use __VA_OPT__(, ) __VA_ARGS__)

using Stream = cudaStream_t;
using Bytes = size_t;
// No stream has this handle.
const Stream no_stream = reinterpret_cast<Stream>(~std::uintptr_t{0});

FD_WRAP_AS(cudaDeviceSynchronize, (), nullptr, Use::device)
FD_WRAP_AS(cudaEventSynchronize, (cudaEvent_t event), no_stream, Use::wait, event)
FD_WRAP_AS(cudaEventQuery, (cudaEvent_t event), no_stream, Use::wait, event)
FD_WRAP(cudaStreamSynchronize, _ptsz, (Stream s), s, Use::wait, s)
FD_WRAP(cudaStreamQuery, _ptsz, (Stream s), s, Use::wait, s)
FD_WRAP(cudaEventRecord, _ptsz, (cudaEvent_t event, Stream s), s, Use::work, event, s)
FD_WRAP(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, Stream s, unsigned flags), s, Use::work, event, s, flags)
FD_WRAP(cudaStreamWaitEvent, _ptsz, (Stream s, cudaEvent_t event, unsigned flags), s, Use::work, s, event, flags)
FD_WRAP(cudaMemcpy, _ptds, (void* to, const void* from, Bytes n, cudaMemcpyKind kind), nullptr, Use::device, to, from,
        n, kind)
FD_WRAP(cudaMemcpyAsync, _ptsz, (void* to, const void* from, Bytes n, cudaMemcpyKind kind, Stream s), s, Use::work, to,
        from, n, kind, s)
FD_WRAP(cudaMemset, _ptds, (void* to, int value, Bytes n), nullptr, Use::device, to, value, n)
FD_WRAP(cudaMemsetAsync, _ptsz, (void* to, int value, Bytes n, Stream s), s, Use::work, to, value, n, s)
FD_WRAP(cudaLaunchKernel, _ptsz, (const void* kernel, dim3 grid, dim3 block, void** arguments, Bytes shared, Stream s),
        s, Use::work, kernel, grid, block, arguments, shared, s)
// What `<<<>>>` becomes since CUDA 13.
FD_WRAP(__cudaLaunchKernel, _ptsz,
        (const void* kernel, dim3 grid, dim3 block, void** arguments, Bytes shared, Stream s), s, Use::work, kernel,
        grid, block, arguments, shared, s)
// Its stream stands in `config`, whose layout is not ours to know.
FD_WRAP(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t* config, const void* kernel, void** arguments), no_stream,
        Use::wait, config, kernel, arguments)
FD_WRAP(cudaLaunchHostFunc, _ptsz, (Stream s, cudaHostFn_t function, void* data), s, Use::work, s, function, data)
FD_WRAP(cudaGraphLaunch, _ptsz, (cudaGraphExec_t graph, Stream s), s, Use::work, graph, s)
