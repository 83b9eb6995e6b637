# Bakes version and commit into harness/cli/version.cpp. The header is written at build time, by WriteVersion.cmake, and
# only if it says something new; so a commit rebuilds one small file and nothing else.
set(build_header_directory ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${build_header_directory})
add_custom_target(firedrill_build_header
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${CMAKE_SOURCE_DIR} -D VERSION=${PROJECT_VERSION}
          -D FILE=${build_header_directory}/firedrill_build.h -P ${CMAKE_CURRENT_LIST_DIR}/WriteVersion.cmake
  BYPRODUCTS ${build_header_directory}/firedrill_build.h
  COMMENT "")
add_dependencies(harness_cli firedrill_build_header)
target_include_directories(harness_cli PRIVATE ${build_header_directory})
