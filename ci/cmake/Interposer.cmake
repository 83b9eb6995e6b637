# libfiredrill_nccl.so, which is preloaded into other people's programs. So it brings along all that it needs: the few
# sources of engine/base that it uses are compiled into it, fmt is used from its headers, the C++ library is linked in,
# and no name but those of the wrapped functions is visible.
set(room ${CMAKE_SOURCE_DIR}/faults/interposer)
file(GLOB interposer_sources CONFIGURE_DEPENDS ${room}/preload/*.cpp)
list(APPEND interposer_sources ${room}/nccl_plan.cpp ${room}/record.cpp ${room}/ring.cpp)
foreach(name error result text units)
  list(APPEND interposer_sources ${CMAKE_SOURCE_DIR}/engine/base/${name}.cpp)
endforeach()

function(firedrill_interposer target)
  add_library(${target} SHARED ${interposer_sources})
  target_link_libraries(${target} PRIVATE firedrill_flags fmt::fmt-header-only nlohmann_json::nlohmann_json
                        Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  target_link_options(${target} PRIVATE LINKER:--as-needed
                      LINKER:--version-script,${CMAKE_SOURCE_DIR}/ci/cmake/interposer.map)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/ci/cmake/interposer.map)
  if(NOT FIREDRILL_SANITIZE)  # the sanitizers' own library is not linked into a shared one
    target_link_options(${target} PRIVATE LINKER:--no-undefined -static-libstdc++ -static-libgcc)
  endif()
endfunction()

firedrill_interposer(firedrill_nccl)
install(TARGETS firedrill_nccl LIBRARY)

# Its wrappers again, compiled against the declarations of a real NCCL and CUDA runtime where they are installed: a
# difference between those and our own is a compile error.
find_path(FIREDRILL_NCCL_INCLUDE nccl.h HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include)
find_path(FIREDRILL_CUDART_INCLUDE cuda_runtime_api.h HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include)
if(FIREDRILL_NCCL_INCLUDE AND FIREDRILL_CUDART_INCLUDE)
  firedrill_interposer(firedrill_nccl_header_check)
  target_compile_definitions(firedrill_nccl_header_check PRIVATE FIREDRILL_NCCL_HEADER)
  target_include_directories(firedrill_nccl_header_check SYSTEM PRIVATE ${FIREDRILL_NCCL_INCLUDE}
                             ${FIREDRILL_CUDART_INCLUDE})
  file(STRINGS ${FIREDRILL_NCCL_INCLUDE}/nccl.h version REGEX "define NCCL_(MAJOR|MINOR|PATCH) ")
  list(TRANSFORM version REPLACE ".* ([0-9]+)$" "\\1")
  list(JOIN version . version)
  message(STATUS "NCCL interposer: checked against ${FIREDRILL_NCCL_INCLUDE}/nccl.h, NCCL ${version}")
else()
  message(STATUS "NCCL interposer: no nccl.h with cuda_runtime_api.h here, so only its own declarations are used")
endif()

# The tests' own NCCL and CUDA runtime on host memory, and a program that calls them: linked with both, with the runtime
# linked statically, and as a plugin that brings them along when it is loaded.
add_library(standin_nccl SHARED ${room}/standin/nccl.cpp ${room}/standin/exchange.cpp
            ${room}/ring.cpp ${CMAKE_SOURCE_DIR}/engine/base/error.cpp ${CMAKE_SOURCE_DIR}/engine/base/result.cpp)
add_library(standin_cudart SHARED ${room}/standin/cuda.cpp)
add_executable(standin_client ${room}/standin/client.cpp)
add_executable(standin_client_static ${room}/standin/client.cpp ${room}/standin/cuda.cpp)
add_library(standin_plugin MODULE ${room}/standin/client.cpp)
add_executable(standin_loader ${room}/standin/loader.cpp)
target_compile_definitions(standin_plugin PRIVATE FIREDRILL_PLUGIN)
set(standins standin_nccl standin_cudart standin_client standin_client_static standin_plugin standin_loader)
foreach(target IN LISTS standins)
  target_link_libraries(${target} PRIVATE firedrill_flags fmt::fmt-header-only Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/standin)
endforeach()
set_target_properties(standin_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2)
set_target_properties(standin_cudart PROPERTIES OUTPUT_NAME cudart SOVERSION 13)
target_link_libraries(standin_client PRIVATE standin_nccl standin_cudart)
target_link_libraries(standin_client_static PRIVATE standin_nccl)
target_link_libraries(standin_plugin PRIVATE standin_nccl standin_cudart)
find_file(FIREDRILL_REAL_NCCL libnccl.so.2 HINTS ENV CUDA_HOME PATHS /usr/local/cuda /usr/lib/x86_64-linux-gnu
          PATH_SUFFIXES lib lib64)
if(NOT FIREDRILL_REAL_NCCL)
  set(FIREDRILL_REAL_NCCL "")
endif()
if(TARGET faults_interposer_test)
  add_dependencies(faults_interposer_test firedrill_nccl firedrill-nccl-rings ${standins})
  target_compile_definitions(faults_interposer_test PRIVATE
                             FIREDRILL_INTERPOSER="$<TARGET_FILE:firedrill_nccl>"
                             FIREDRILL_CLIENT="$<TARGET_FILE:standin_client>"
                             FIREDRILL_CLIENT_STATIC="$<TARGET_FILE:standin_client_static>"
                             FIREDRILL_PLUGIN="$<TARGET_FILE:standin_plugin>"
                             FIREDRILL_LOADER="$<TARGET_FILE:standin_loader>"
                             FIREDRILL_REAL_NCCL="${FIREDRILL_REAL_NCCL}"
                             FIREDRILL_RINGS="$<TARGET_FILE:firedrill-nccl-rings>")
endif()
if(TARGET interposer_bench)  # the interposer before the stand-in, as a preloaded one would be
  target_link_libraries(interposer_bench PRIVATE firedrill_nccl standin_nccl)
endif()
