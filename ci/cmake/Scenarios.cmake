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
firedrill_scenario(rank/kill_behind_a_comparison sim)
firedrill_scenario(rank/hang sim process)
firedrill_scenario(rank/stall sim process)
firedrill_scenario(rank/slow_within_bound sim process)
firedrill_scenario(rank/slow_beyond_bound sim process)
firedrill_scenario(rank/slow_save sim process)
firedrill_scenario(rank/preempt sim process)
firedrill_scenario(rank/preempt_async sim process)
firedrill_scenario(rank/preempt_in_accumulation sim process)
firedrill_scenario(rank/preempt_short_grace sim process)
firedrill_scenario(rank/exit sim process)
firedrill_scenario(rank/kill_node sim)  # one machine has one node
firedrill_scenario(rank/clock_skew sim)
firedrill_scenario(rank/elastic_fewer_ranks sim process)
firedrill_scenario(rank/elastic_more_ranks sim process)
firedrill_scenario(rank/mixed_precision sim process)
firedrill_scenario(rank/experts sim process)
firedrill_scenario(rank/kill_node_losing_unsynced sim)  # a real machine's cache cannot be made to forget
firedrill_scenario(rank/async_kill_in_publish sim process)
firedrill_scenario(storage/async_error_reaches_the_job sim process)
firedrill_scenario(storage/async_failures_are_survived sim process)
firedrill_scenario(storage/async_slow_disk sim process)
firedrill_scenario(storage/one_publish sim process)
firedrill_scenario(storage/crash_first_publish sim process)
firedrill_scenario(storage/crash_second_publish sim process)
firedrill_scenario(storage/crash_in_recovery sim process)
firedrill_scenario(storage/crash_twice sim process)
firedrill_scenario(storage/io_error_on_manifest sim process)
firedrill_scenario(storage/io_error_on_write sim process)
firedrill_scenario(storage/no_space_on_write sim process)
firedrill_scenario(storage/one_resume sim process)
firedrill_scenario(storage/lose_unsynced_data sim)
firedrill_scenario(storage/lose_unsynced_names sim)
firedrill_scenario(storage/torn_write sim)
firedrill_scenario(storage/dropped_write sim)
firedrill_scenario(storage/dropped_writes_are_survived sim)
firedrill_scenario(storage/short_write sim process)
firedrill_scenario(storage/misdirected_write sim)
firedrill_scenario(storage/bit_flip_on_write sim process)
firedrill_scenario(storage/bit_flip_at_rest sim process)
firedrill_scenario(storage/failed_sync sim process)
firedrill_scenario(storage/failed_sync_of_names sim process)
firedrill_scenario(storage/sync_fails_once sim process)
firedrill_scenario(storage/lying_sync sim)
firedrill_scenario(storage/slow_disk sim process)
firedrill_scenario(storage/stale_listing sim)
firedrill_scenario(storage/stale_stat sim)
firedrill_scenario(storage/stale_stat_in_recovery sim)
firedrill_scenario(storage/late_visibility sim)
firedrill_scenario(storage/catalog_kills sim process)
firedrill_scenario(storage/catalog_power_loss sim)
firedrill_scenario(storage/catalog_errors sim process)
firedrill_scenario(storage/file_vanishes sim process)
firedrill_scenario(scale/hybrid_64_ranks sim)
firedrill_scenario(scale/thousand_ranks sim)  # a thousand processes do not fit on a small machine
firedrill_scenario(collective/skip_call sim process)
firedrill_scenario(collective/skip_sharded_sum sim process)
firedrill_scenario(collective/skip_trial_restore sim)
firedrill_scenario(collective/duplicate_call sim process)
firedrill_scenario(collective/duplicate_call_in_the_first_step sim)
firedrill_scenario(collective/wrong_count sim process)
firedrill_scenario(collective/wrong_dtype sim process)
firedrill_scenario(collective/wrong_dtype_of_all sim)
firedrill_scenario(collective/wrong_root sim process)
firedrill_scenario(collective/wrong_reduce_op sim process)
firedrill_scenario(collective/reorder_calls sim process)
firedrill_scenario(collective/early_abort sim process)
firedrill_scenario(collective/early_abort_ahead_of_a_receive sim process)
firedrill_scenario(collective/early_abort_in_the_first_step sim)
firedrill_scenario(collective/delay_message sim process)
firedrill_scenario(collective/drop_message sim process)
firedrill_scenario(collective/duplicate_message sim process)
firedrill_scenario(collective/late_message sim)  # one that outlives its connection needs a network of our own
firedrill_scenario(collective/partition sim)
firedrill_scenario(collective/partition_one_way sim)
firedrill_scenario(collective/slow_link sim)
firedrill_scenario(collective/flaky_link sim)
firedrill_scenario(rank/slow_shard sim process)
firedrill_scenario(rank/unreadable_shard sim process)
firedrill_scenario(rank/bad_sample sim process)
firedrill_scenario(rank/shard_ends_early sim process)
firedrill_scenario(rank/exception_in_a_step sim process)
firedrill_scenario(rank/bit_flip_rerun sim process)
firedrill_scenario(rank/nan_rerun sim process)
firedrill_scenario(rank/bit_flip_replica_check sim process)
firedrill_scenario(rank/bit_flip_two_replicas sim process)
firedrill_scenario(collective/corrupt_payload sim process)
firedrill_scenario(collective/corrupt_payload_behind_the_reduction sim process)
firedrill_scenario(rank/spare_node sim)
firedrill_scenario(rank/fewer_ranks_behind_a_loss sim)
firedrill_scenario(limits/no_spare_left sim)
firedrill_scenario(limits/poison_step sim process)
firedrill_scenario(limits/beyond_the_budget sim process)
firedrill_scenario(limits/refused_by_the_budget sim)

# Every content of the disk that a power loss may leave, in every profile and in both catalogs.
function(firedrill_crashcheck path)
  if(NOT TARGET firedrill)
    return()
  endif()
  foreach(catalog files rocksdb)
    set(test crashcheck.${path}.${catalog})
    add_test(NAME ${test} COMMAND firedrill crashcheck scenarios/${path}.yaml --profile all --engine lazy
                                  --set job.checkpoint.catalog=${catalog}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${test} PROPERTIES LABELS crashcheck TIMEOUT 600
                         PASS_REGULAR_EXPRESSION "nfs    complete" FAIL_REGULAR_EXPRESSION "NOT COMPLETE;FAIL;error ")
  endforeach()
endfunction()

firedrill_crashcheck(storage/one_publish)
firedrill_crashcheck(storage/crash_first_publish)
firedrill_crashcheck(storage/crash_second_publish)
firedrill_crashcheck(storage/crash_in_recovery)
firedrill_crashcheck(storage/crash_twice)
firedrill_crashcheck(storage/sync_fails_once)

# The weaker storage in which each node has a cache of its own.
foreach(path storage/one_publish storage/crash_second_publish)
  foreach(catalog files rocksdb)
    if(NOT TARGET firedrill)
      break()
    endif()
    set(test crashcheck.${path}.node_caches.${catalog})
    add_test(NAME ${test} COMMAND firedrill crashcheck scenarios/${path}.yaml --profile posix --engine lazy
                                  --set crash.node_caches=true --set job.checkpoint.catalog=${catalog}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${test} PROPERTIES LABELS crashcheck TIMEOUT 600
                         PASS_REGULAR_EXPRESSION "posix  complete.*each node has a cache of its own"
                         FAIL_REGULAR_EXPRESSION "NOT COMPLETE;FAIL;error ")
  endforeach()
endforeach()

# One storage fault at every position of a run with a resume, in both catalogs.
foreach(kind io_error no_space lose_unsynced_data lose_unsynced_names torn_write dropped_write short_write
             misdirected_write bit_flip_on_write bit_flip_at_rest failed_sync lying_sync slow_disk stale_listing
             stale_stat late_visibility file_vanishes clock_skew)
  foreach(catalog files rocksdb)
    if(NOT TARGET firedrill)
      break()
    endif()
    add_test(NAME sweep.${kind}.${catalog}
             COMMAND firedrill sweep scenarios/storage/one_resume.yaml --fault ${kind}
                     --set job.checkpoint.catalog=${catalog}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(sweep.${kind}.${catalog} PROPERTIES LABELS sweep TIMEOUT 900)
  endforeach()
endforeach()

# What other builds and machines recorded holds here too; a golden of another numerics key is not compared, and skipped.
if(TARGET firedrill)
  add_test(NAME golden.verify COMMAND firedrill golden verify scenarios/jobs/nano.yaml scenarios/jobs/tiny.yaml
                                     scenarios/jobs/nano-hybrid.yaml scenarios/jobs/nano-mixed.yaml
                                     scenarios/jobs/moe-nano.yaml
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(golden.verify PROPERTIES LABELS golden SKIP_RETURN_CODE 4 TIMEOUT 300)
endif()

# What a person runs before a long run: a go with real kills in it, and a no-go where nothing can be made.
if(TARGET firedrill)
  add_test(NAME preflight.standard COMMAND firedrill preflight scenarios/jobs/nano.yaml --level standard
                                          --dir ${CMAKE_BINARY_DIR}/preflight
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(preflight.standard PROPERTIES LABELS preflight TIMEOUT 300)
  add_test(NAME preflight.no_go COMMAND firedrill preflight scenarios/jobs/nano.yaml --dir /proc/firedrill
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(preflight.no_go PROPERTIES LABELS preflight TIMEOUT 120
                       PASS_REGULAR_EXPRESSION "no-go +storage: .*NO-GO: nano on dp=4, level quick")
endif()

# Every layout of a job, and its restart under another one, ends with the bits of one rank.
foreach(job nano-hybrid nano-mixed moe-nano)
  if(NOT TARGET firedrill)
    break()
  endif()
  add_test(NAME layouts.${job} COMMAND firedrill layouts scenarios/jobs/${job}.yaml
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(layouts.${job} PROPERTIES LABELS layouts TIMEOUT 900)
endforeach()

set_property(SOURCE ${CMAKE_SOURCE_DIR}/harness/scenario/shipped_test.cpp ${CMAKE_SOURCE_DIR}/harness/cli/fit_test.cpp
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
