# FIREDRILL_CUDA: the rooms that talk to a GPU, linked with the CUDA Toolkit, NCCL and LibTorch's CUDA part. To
# build and to link them needs no GPU; their tests carry the label `gpu` and skip themselves where there is none.
option(FIREDRILL_CUDA "Build what needs the CUDA Toolkit and NCCL" OFF)
set(firedrill_cuda "")  # what the rooms link that can do with a GPU and without
if(NOT FIREDRILL_CUDA)
  return()
endif()

find_package(CUDAToolkit REQUIRED)
find_path(FIREDRILL_NCCL_INCLUDE nccl.h HINTS ENV NCCL_HOME ENV CUDA_HOME ${CUDAToolkit_INCLUDE_DIRS}
          PATH_SUFFIXES include REQUIRED)
find_library(FIREDRILL_NCCL_LIBRARY nccl HINTS ENV NCCL_HOME ENV CUDA_HOME ${CUDAToolkit_LIBRARY_DIR}
             PATH_SUFFIXES lib lib64 REQUIRED)
add_library(firedrill_cuda INTERFACE)
target_include_directories(firedrill_cuda SYSTEM INTERFACE ${FIREDRILL_NCCL_INCLUDE})
target_link_libraries(firedrill_cuda INTERFACE ${FIREDRILL_NCCL_LIBRARY} CUDA::cudart)
target_compile_definitions(firedrill_cuda INTERFACE FIREDRILL_CUDA)
set(firedrill_cuda firedrill_cuda)

# LibTorch's CUDA part registers itself when it is loaded: no symbol of it is named.
foreach(library libtorch_cuda.so libc10_cuda.so)
  if(NOT EXISTS ${TORCH_ROOT}/lib/${library})
    message(FATAL_ERROR "${TORCH_ROOT}/lib/${library} is not there: this LibTorch is for CPUs only. Run ci/setup where "
                        "nvcc is on the PATH, or give -DCMAKE_PREFIX_PATH=/path/to/libtorch with CUDA.")
  endif()
endforeach()
target_link_options(firedrill_cuda INTERFACE LINKER:--no-as-needed)
target_link_libraries(firedrill_cuda INTERFACE ${TORCH_ROOT}/lib/libtorch_cuda.so ${TORCH_ROOT}/lib/libc10_cuda.so)
message(STATUS "CUDA Toolkit ${CUDAToolkit_VERSION}, NCCL: ${FIREDRILL_NCCL_LIBRARY}")
