# Language level, warnings, determinism flags, ccache, sanitizers. Every target of ours links firedrill_flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # what is installed finds LibTorch where it was linked
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Debug is for stepping and for the expensive checks; the little optimisation makes its tests several times faster. The
# sanitizer builds (RelWithDebInfo) keep those checks, too: neither defines NDEBUG.
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
set(FIREDRILL_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: address,undefined or thread")

set(FIREDRILL_COVERAGE "" CACHE STRING "The room whose lines and branches are counted: engine/ckpt")

find_program(CCACHE ccache)
if(CCACHE)
  # The macros and times of the precompiled header are not looked at, or no file that uses it would ever be a hit; and
  # paths are taken from the root of the tree, so that another clone of it finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

add_library(firedrill_flags INTERFACE)
target_include_directories(firedrill_flags INTERFACE ${CMAKE_SOURCE_DIR})
# -ffp-contract=off: a fused multiply-add rounds once where two operations round twice, and not every CPU has it.
# -ffile-prefix-map: a failed check names its file from the root of the tree, wherever that was built (ccache hands the
# compiler paths relative to the build folder).
file(RELATIVE_PATH root_from_build ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
target_compile_options(firedrill_flags INTERFACE -ffp-contract=off -fno-fast-math -Wall -Wextra -Wpedantic -Werror
                       -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers
                       -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -ffile-prefix-map=${root_from_build}=)
# What LibTorch is built with; a precompiled header serves only where it is said alike.
target_compile_definitions(firedrill_flags INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
if(FIREDRILL_SANITIZE)
  target_compile_options(firedrill_flags INTERFACE -fsanitize=${FIREDRILL_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(firedrill_flags INTERFACE -fsanitize=${FIREDRILL_SANITIZE})
  string(FIND "${FIREDRILL_SANITIZE}" fuzzer FIREDRILL_FUZZ)  # not -1: the fuzz targets (x_fuzz.cpp) can be built
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(firedrill_flags INTERFACE -Wno-unknown-pragmas)  # those of gcc
endif()
if(FIREDRILL_SANITIZE STREQUAL "thread")
  # Asio's memory fences, which that sanitizer does not understand, are not needed where each queue has its mutex.
  target_compile_definitions(firedrill_flags INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
