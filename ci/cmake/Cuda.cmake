# FIREDRILL_CUDA: the rooms that talk to a GPU, linked with the CUDA Toolkit, NCCL and LibTorch's CUDA part. To
# build and to link them needs no GPU; their tests carry the label `gpu` and skip themselves where there is none.
option(FIREDRILL_CUDA "Build what needs the CUDA Toolkit and NCCL" OFF)
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
message(STATUS "CUDA Toolkit ${CUDAToolkit_VERSION}, NCCL: ${FIREDRILL_NCCL_LIBRARY}")
