# Tests that are no programs of ours: includes and style, and that the checker itself can fail.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME style.check COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/ci/check)
add_test(NAME style.self_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/ci/check --self-test)
set_tests_properties(style.check style.self_test PROPERTIES LABELS style)
