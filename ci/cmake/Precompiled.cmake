# firedrill_precompile(TARGET KIND): the headers that nearly every file includes, read once for all targets. KIND is
# `base`, or one of these with a few more: `json`, `cli` (that, and the command line), `test` (those of GoogleTest).
# Less in it is faster: nlohmann/json.hpp costs the files that go without it more than it saves the others.
#
# Only release builds have it: a file that forgets an include still fails in debug. What GCC 12 mistakes for an access
# out of bounds where a temporary std::string is moved (as in https://github.com/canonical/mir/issues/2987) it keeps to
# itself in headers of the system, but not in precompiled ones: tests go without these warnings, and elsewhere
# emplace_back(text) does for push_back(text).
set(FIREDRILL_PRECOMPILED OFF)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  set(FIREDRILL_PRECOMPILED ON)
endif()

set(nearly_everywhere <fmt/format.h> <algorithm> <array> <atomic> <chrono> <compare> <cstddef> <cstdint> <cstring>
    <deque> <filesystem> <functional> <iterator> <map> <memory> <optional> <set> <span> <stdexcept> <string>
    <string_view> <type_traits> <unordered_map> <utility> <vector>)

function(firedrill_precompiled name)
  cmake_parse_arguments(PCH "" "" "HEADERS;OPTIONS;LINK" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_SOURCE_DIR}/ci/cmake/pch.cpp)
  target_link_libraries(${name} PRIVATE firedrill_flags fmt::fmt ${PCH_LINK})
  target_compile_options(${name} PRIVATE ${PCH_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${nearly_everywhere} ${PCH_HEADERS})
endfunction()

if(FIREDRILL_PRECOMPILED)
  firedrill_precompiled(firedrill_base_pch)
  firedrill_precompiled(firedrill_test_pch OPTIONS -O1 LINK GTest::gtest GTest::gmock
                        HEADERS <gmock/gmock.h> <gtest/gtest.h>)
  firedrill_precompiled(firedrill_json_pch LINK nlohmann_json::nlohmann_json HEADERS <nlohmann/json.hpp>)
  firedrill_precompiled(firedrill_cli_pch LINK CLI11::CLI11 nlohmann_json::nlohmann_json
                        HEADERS <CLI/CLI.hpp> <nlohmann/json.hpp>)
endif()

function(firedrill_precompile target kind)
  if(NOT FIREDRILL_PRECOMPILED)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM firedrill_${kind}_pch)
  if(kind STREQUAL test AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()
