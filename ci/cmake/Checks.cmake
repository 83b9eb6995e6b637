# Tests that are no programs of ours: includes and style, and that the checker itself can fail.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME style.check COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/ci/check)
add_test(NAME style.self_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/ci/check --self-test)
set_tests_properties(style.check style.self_test PROPERTIES LABELS style)

# The files for GitHub and GitLab, the HTML page in a browser, and the trace read by Perfetto's own package: skipped
# where the tool for it is not installed.
add_test(NAME workflows.check COMMAND ${CMAKE_SOURCE_DIR}/ci/workflows)
set_tests_properties(workflows.check PROPERTIES LABELS style SKIP_RETURN_CODE 4)
if(TARGET firedrill)
  add_test(NAME report.trace COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/ci/trace_test.py $<TARGET_FILE:firedrill>
                                     scenarios/quickstart.yaml)
  add_test(NAME report.page COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/ci/report $<TARGET_FILE:firedrill>)
  set_tests_properties(report.trace report.page PROPERTIES LABELS report SKIP_RETURN_CODE 4 TIMEOUT 600
                       WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endif()
