# firedrill::torch: the C++ part of LibTorch, from the first of
#   1. CMAKE_PREFIX_PATH, the CMake or the environment variable (a LibTorch of the user's own: lib/ and include/),
#   2. .deps/torch, which ci/setup fills or, when it found a LibTorch elsewhere, points there,
#   3. a Python that has torch.
# LibTorch's own TorchConfig.cmake is not used: of a wheel built for CUDA it demands a CUDA toolkit, which a machine
# without a GPU does not need.
# One older than 2.7 (the first whose wheels all have the C++11 ABI) is passed over, as ci/setup does.
function(firedrill_is_libtorch folder result)
  set(${result} FALSE PARENT_SCOPE)
  if(NOT EXISTS ${folder}/lib/libtorch_cpu.so OR NOT EXISTS ${folder}/include/ATen/ATen.h)
    return()
  endif()
  set(version "")
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT version AND EXISTS ${folder}/include/${header})
      file(STRINGS ${folder}/include/${header} lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR) ")
      string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
      list(JOIN lines . version)
    endif()
  endforeach()
  if(version AND version VERSION_LESS 2.7)
    message(STATUS "LibTorch: ${folder} is version ${version}, older than 2.7: passed over")
    return()
  endif()
  set(${result} TRUE PARENT_SCOPE)
endfunction()

set(candidates "")
string(REPLACE ":" ";" environment_prefixes "$ENV{CMAKE_PREFIX_PATH}")
foreach(prefix IN LISTS CMAKE_PREFIX_PATH environment_prefixes)
  list(APPEND candidates ${prefix} ${prefix}/torch)
endforeach()
list(APPEND candidates ${CMAKE_SOURCE_DIR}/.deps/torch)
set(TORCH_ROOT "")
foreach(candidate IN LISTS candidates)
  if(NOT TORCH_ROOT)
    firedrill_is_libtorch(${candidate} usable)
    if(usable)
      set(TORCH_ROOT ${candidate})
    endif()
  endif()
endforeach()
if(NOT TORCH_ROOT)
  find_program(PYTHON3 python3)
  if(PYTHON3)
    execute_process(COMMAND ${PYTHON3} -c
      "import importlib.util, os; s = importlib.util.find_spec('torch'); print(os.path.dirname(s.origin) if s else '')"
      OUTPUT_VARIABLE TORCH_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT TORCH_ROOT OR NOT EXISTS ${TORCH_ROOT}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch was not found. Run ci/setup, or give -DCMAKE_PREFIX_PATH=/path/to/libtorch.")
endif()
message(STATUS "LibTorch: ${TORCH_ROOT}")

# LibTorch brings headers of another fmt than the one that the rooms below link, and the two must not meet in one
# program: the system's come first.
find_path(FMT_INCLUDE fmt/format.h REQUIRED NO_DEFAULT_PATH PATHS ${CMAKE_PREFIX_PATH} /usr /usr/local
          PATH_SUFFIXES include)
set(fmt_first ${CMAKE_BINARY_DIR}/include_first)
file(MAKE_DIRECTORY ${fmt_first})
file(CREATE_LINK ${FMT_INCLUDE}/fmt ${fmt_first}/fmt SYMBOLIC)

add_library(firedrill_torch INTERFACE)
add_library(firedrill::torch ALIAS firedrill_torch)
target_include_directories(firedrill_torch SYSTEM INTERFACE ${fmt_first} ${TORCH_ROOT}/include
                           ${TORCH_ROOT}/include/torch/csrc/api/include)
target_link_libraries(firedrill_torch INTERFACE ${TORCH_ROOT}/lib/libtorch_cpu.so ${TORCH_ROOT}/lib/libc10.so)
target_link_options(firedrill_torch INTERFACE -Wl,-rpath,${TORCH_ROOT}/lib -Wl,--disable-new-dtags)

# One precompiled header for all that see tensors: torch/torch.h costs 20 s a file without it.
add_library(firedrill_torch_pch OBJECT ${CMAKE_SOURCE_DIR}/ci/cmake/torch_pch.cpp)
target_link_libraries(firedrill_torch_pch PUBLIC firedrill_torch firedrill_flags)
target_precompile_headers(firedrill_torch_pch PRIVATE <torch/torch.h>)
