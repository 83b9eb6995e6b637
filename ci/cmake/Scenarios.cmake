# Every scenario is a test: `firedrill run` on it, in each world that is named, must end with its expectation met. A
# scenario that is not listed here breaks configure: it would be data that nobody tries.
function(firedrill_scenario path)
  set_property(GLOBAL APPEND PROPERTY FIREDRILL_SCENARIOS scenarios/${path}.yaml)
  if(NOT TARGET firedrill)
    return()
  endif()
  foreach(world IN LISTS ARGN)
    set(test scenario.${path}.${world})
    add_test(NAME ${test} COMMAND firedrill run scenarios/${path}.yaml --world ${world}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${test} PROPERTIES LABELS scenario TIMEOUT 300)
  endforeach()
endfunction()

firedrill_scenario(quickstart sim process)
firedrill_scenario(rank/kill_in_step sim process)
firedrill_scenario(rank/kill_in_save sim process)
firedrill_scenario(rank/kill_in_commit sim process)
firedrill_scenario(rank/kill_during_recovery sim process)
firedrill_scenario(rank/kill_node sim)  # one machine has one node
firedrill_scenario(rank/kill_node_losing_unsynced sim)  # a real machine's cache cannot be made to forget
firedrill_scenario(rank/async_kill_in_publish sim process)
firedrill_scenario(storage/async_error_reaches_the_job sim process)
firedrill_scenario(storage/async_failures_are_survived sim process)
firedrill_scenario(storage/async_slow_disk sim process)
firedrill_scenario(storage/one_publish sim process)
firedrill_scenario(storage/io_error_on_manifest sim process)
firedrill_scenario(storage/io_error_on_write sim process)
firedrill_scenario(storage/no_space_on_write sim process)
firedrill_scenario(limits/beyond_the_budget sim process)
firedrill_scenario(limits/refused_by_the_budget sim)

# What other builds and machines recorded holds here too; a golden of another numerics key is not compared, and skipped.
if(TARGET firedrill)
  add_test(NAME golden.verify COMMAND firedrill golden verify scenarios/jobs/nano.yaml scenarios/jobs/tiny.yaml
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(golden.verify PROPERTIES LABELS golden SKIP_RETURN_CODE 4 TIMEOUT 300)
endif()

set_property(SOURCE ${CMAKE_SOURCE_DIR}/harness/scenario/shipped_test.cpp
             PROPERTY COMPILE_DEFINITIONS FIREDRILL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")

file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/scenarios/*.yaml)
list(FILTER found EXCLUDE REGEX "^scenarios/jobs/")
get_property(listed GLOBAL PROPERTY FIREDRILL_SCENARIOS)
foreach(scenario IN LISTS found)
  if(NOT scenario IN_LIST listed)
    message(FATAL_ERROR "${scenario} is tried by no test: add it to ci/cmake/Scenarios.cmake.")
  endif()
endforeach()
foreach(scenario IN LISTS listed)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${scenario})
    message(FATAL_ERROR "${scenario}, which ci/cmake/Scenarios.cmake lists, does not exist.")
  endif()
endforeach()
