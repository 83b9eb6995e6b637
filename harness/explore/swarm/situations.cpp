#include "harness/explore/swarm/situations.h"

#include <algorithm>
#include <array>
#include <set>

#include "engine/base/check.h"
#include "faults/operations.h"

namespace firedrill {
namespace {

template <class Fits>
bool any(const Case& run, EventKind kind, Fits fits) {
  return std::ranges::any_of(run.history().of(kind), [&](std::uint32_t at) { return fits(run.event(at)); });
}

std::int64_t count(const Case& run, EventKind kind) { return std::ssize(run.history().of(kind)); }

template <class Fits>
bool fired(const Case& run, Fits fits) {
  return any(run, EventKind::fault_fired, [&](const Event& event) {
    const FaultSpec* fault = run.fault(event);
    return fault != nullptr && fits(*fault, event);
  });
}

bool known_commit(const Case& run, std::uint32_t before, NameId id) {
  return std::ranges::any_of(run.history().of(EventKind::committed),
                             [&](std::uint32_t at) { return at < before && run.event(at).name == id; });
}

// What the group of an attempt decided on: the first `found` of each attempt.
template <class Fits>
bool any_choice(const Case& run, Fits fits) {
  for (const std::uint32_t at : run.history().of(EventKind::found)) {
    const Event& event = run.event(at);
    if (event.a >= 0 && fits(at, event)) return true;
  }
  return false;
}

bool commit_found_that_nobody_reported(const Case& run) {
  return any_choice(run, [&](std::uint32_t at, const Event& event) { return !known_commit(run, at, event.name); });
}

// A newer commit was reported, nothing is wrong with it, and an older one is chosen.
bool late_commit_passed_over(const Case& run) {
  return any_choice(run, [&](std::uint32_t at, const Event& chosen) {
    return any(run, EventKind::committed, [&](const Event& event) {
      if (event.step <= chosen.a || event.attempt >= chosen.attempt) return false;
      const auto gone = [&](EventKind kind) {
        return std::ranges::any_of(run.history().of(kind), [&](std::uint32_t other) {
          return other < at && run.event(other).name == event.name;
        });
      };
      return !gone(EventKind::damage) && !gone(EventKind::rejected) && !gone(EventKind::retired);
    });
  });
}

bool stepped_back(const Case& run) {
  return any_choice(run, [&](std::uint32_t at, const Event& chosen) {
    return std::ranges::any_of(run.history().of(EventKind::damage), [&](std::uint32_t damaged) {
      const Event& event = run.event(damaged);
      return damaged < at && event.attempt == chosen.attempt && event.a > chosen.a;
    });
  });
}

// Ended by a fault before its first step.
bool died_in_recovery(const Case& run, const AttemptSpan& attempt) {
  for (std::size_t at = attempt.begin; at < attempt.end; ++at) {
    const Event& event = run.event(at);
    if (event.kind == EventKind::sample || event.kind == EventKind::step_done) return false;
  }
  return attempt.number > 1;
}

int attempts_dead_in_recovery(const Case& run) {
  return static_cast<int>(std::ranges::count_if(
      run.attempts(), [&](const AttemptSpan& attempt) { return died_in_recovery(run, attempt); }));
}

bool recovery_died(const Case& run) { return attempts_dead_in_recovery(run) >= 1; }
bool recovery_died_twice(const Case& run) { return attempts_dead_in_recovery(run) >= 2; }

bool two_deaths_in_one_attempt(const Case& run) {
  std::set<std::pair<int, std::int64_t>> seen;  // attempt, plan index
  for (const std::uint32_t at : run.history().of(EventKind::fault_fired)) {
    const Event& event = run.event(at);
    const FaultSpec* fault = run.fault(event);
    if (fault != nullptr && takes_ranks(fault->kind)) seen.emplace(event.attempt, event.a);
  }
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  return std::ranges::adjacent_find(seen, same) != seen.end();
}

bool try_failed_and_next_succeeded(const Case& run) {
  return any(run, EventKind::save_failed, [&](const Event& failed) {
    return failed.b == 0 && any(run, EventKind::acknowledged, [&](const Event& saved) {
             return saved.attempt == failed.attempt && saved.step == failed.step && saved.a > failed.a;
           });
  });
}

bool publish_failed_and_training_went_on(const Case& run) {
  return any(run, EventKind::save_failed, [&](const Event& failed) {
    return failed.b == 1 && any(run, EventKind::acknowledged, [&](const Event& saved) {
             return saved.attempt == failed.attempt && saved.step > failed.step;
           });
  });
}

bool publish_failed_and_ended_the_attempt(const Case& run) {
  return any(run, EventKind::save_failed, [&](const Event& failed) {
    return failed.b == 1 && any(run, EventKind::rank_ended,
                                [&](const Event& end) { return end.attempt == failed.attempt && end.a == 1; });
  });
}

bool validated_by_recovery(const Case& run) {
  return any(run, EventKind::validated,
             [](const Event& event) { return event.phase == Phase::restore || event.phase == Phase::find; });
}

bool fresh_start_behind_a_failure(const Case& run) {
  return any(run, EventKind::started_fresh, [](const Event& event) { return event.attempt > 1; });
}

bool same_checkpoint_twice(const Case& run) {
  std::set<std::pair<NameId, int>> seen;
  for (const std::uint32_t at : run.history().of(EventKind::found)) {
    if (run.event(at).a >= 0) seen.emplace(run.event(at).name, run.event(at).attempt);
  }
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  return std::ranges::adjacent_find(seen, same) != seen.end();
}

// Retention deletes while a publish of the same attempt is under way.
bool retired_beside_a_publish(const Case& run) {
  const auto& events = run.history();
  for (const std::uint32_t at : events.of(EventKind::retired)) {
    const Event& retired = run.event(at);
    for (const std::uint32_t dispatched : events.of(EventKind::save_dispatched)) {
      const Event& save = run.event(dispatched);
      if (dispatched > at || save.attempt != retired.attempt || save.rank != retired.rank) continue;
      const bool done = std::ranges::any_of(events.of(EventKind::acknowledged), [&](std::uint32_t other) {
        const Event& end = run.event(other);
        return other < at && end.attempt == save.attempt && end.rank == save.rank && end.step == save.step;
      });
      if (!done) return true;
    }
  }
  return false;
}

// What the coordinator retires was restored from in this very attempt: readers came first.
bool retired_what_the_attempt_began_with(const Case& run) {
  return any(run, EventKind::retired, [&](const Event& retired) {
    return any(run, EventKind::found,
               [&](const Event& found) { return found.attempt == retired.attempt && found.name == retired.name; });
  });
}

bool attempt_ended_with_a_publish_in_flight(const Case& run) {
  return any(run, EventKind::save_dispatched, [&](const Event& save) {
    return !any(run, EventKind::acknowledged, [&](const Event& end) {
      return end.attempt == save.attempt && end.rank == save.rank && end.step == save.step;
    });
  });
}

bool resumed_under_another_layout(const Case& run) {
  const auto started = run.history().of(EventKind::attempt_started);
  return any_choice(run, [&](std::uint32_t, const Event& chosen) {
    NameId saved = 0;
    NameId now = 0;
    for (const std::uint32_t at : started) {
      if (run.event(at).attempt == chosen.b) saved = run.event(at).name;
      if (run.event(at).attempt == chosen.attempt) now = run.event(at).name;
    }
    return saved != now;
  });
}

bool preempted_in_a_save(const Case& run) {
  return fired(run, [](const FaultSpec& fault, const Event& event) {
    return fault.kind == FaultKind::preempt && saves(event.phase);
  });
}

bool left_in_order(const Case& run) {
  return any(run, EventKind::preempt_agreed, [&](const Event& agreed) {
    return any(run, EventKind::acknowledged,
               [&](const Event& saved) { return saved.attempt == agreed.attempt && saved.step >= agreed.a; });
  });
}

bool commit_window_hit(const Case& run) {
  return fired(run, [](const FaultSpec& fault, const Event& event) {
    return takes_ranks(fault.kind) && event.phase == Phase::commit && event.rank == 0;
  });
}

bool retention_hit(const Case& run) {
  return fired(run, [](const FaultSpec& fault, const Event& event) {
    return takes_ranks(fault.kind) && event.phase == Phase::retire;
  });
}

bool blamed(const Case& run, Suspicion suspicion) {
  return any(run, EventKind::suspected,
             [suspicion](const Event& event) { return event.b == static_cast<std::int64_t>(suspicion); });
}

// In the order of their names.
constexpr std::array all = {
    Situation{"a_commit_nobody_reported_is_found", "its coordinator died between the rename and the report",
              commit_found_that_nobody_reported},
    Situation{"a_newer_commit_is_passed_over", "it landed late or was never accepted, and is invisible",
              late_commit_passed_over},
    Situation{"a_preemption_in_a_save", "ranks are told to leave while a checkpoint is written", preempted_in_a_save},
    Situation{"a_publish_fails_and_ends_the_attempt", "all tries failed, and the job stops on errors",
              publish_failed_and_ended_the_attempt},
    Situation{"a_publish_fails_and_training_goes_on", "all tries failed, and the job survives that",
              publish_failed_and_training_went_on},
    Situation{"a_recovery_dies", "a fault ends an attempt before its first step", recovery_died},
    Situation{"a_try_fails_and_the_next_succeeds", "a publish is tried again in a new directory",
              try_failed_and_next_succeeded},
    Situation{"all_replicas_disagree", "no majority says which one is right",
              [](const Case& run) {
                return any(run, EventKind::replicas_compared, [](const Event& event) { return event.b == -2; });
              }},
    Situation{"an_update_is_skipped", "the loss scale overflowed",
              [](const Case& run) {
                return any(run, EventKind::step_done, [](const Event& event) { return event.a == 1; });
              }},
    Situation{"blame_for_a_dead_rank", "its peers were told that its process is gone",
              [](const Case& run) { return blamed(run, Suspicion::dead); }},
    Situation{"blame_for_a_mismatch", "ranks issued different calls",
              [](const Case& run) { return blamed(run, Suspicion::mismatched); }},
    Situation{"blame_for_a_slow_rank", "its work went on, too slowly",
              [](const Case& run) { return blamed(run, Suspicion::slow); }},
    Situation{"blame_for_a_stopped_rank", "it was there and said nothing",
              [](const Case& run) { return blamed(run, Suspicion::stopped); }},
    Situation{"blame_for_a_stuck_rank", "it gave signs of life, and its work did not go on",
              [](const Case& run) { return blamed(run, Suspicion::stuck); }},
    Situation{"death_in_retention", "a rank dies between a tombstone and the last deletion", retention_hit},
    Situation{"death_of_the_coordinator_in_a_commit", "between the last shard and the durable record",
              commit_window_hit},
    Situation{"one_checkpoint_serves_two_restarts", "no attempt between them saved a newer one", same_checkpoint_twice},
    Situation{"one_replica_of_many_differs", "the majority names it",
              [](const Case& run) {
                return any(run, EventKind::replicas_compared, [](const Event& event) { return event.b >= 0; });
              }},
    Situation{"ranks_leave_in_order", "a preemption was agreed on, and its checkpoint acknowledged", left_in_order},
    Situation{"recovery_steps_back", "a newer candidate is damaged, and an older one is taken", stepped_back},
    Situation{"recovery_validates", "a candidate without its mark gets it from those that restored it",
              validated_by_recovery},
    Situation{"rerun_differs", "a result that was computed again was another one",
              [](const Case& run) { return count(run, EventKind::rerun_differed) > 0; }},
    Situation{"resumed_under_another_layout", "saved by other ranks than those that restore it",
              resumed_under_another_layout},
    Situation{"retention_beside_a_publish", "an older checkpoint is deleted while a newer one is written aside",
              retired_beside_a_publish},
    Situation{"retention_of_what_was_restored", "the checkpoint that the attempt began with is deleted in it",
              retired_what_the_attempt_began_with},
    Situation{"the_attempt_ends_with_a_publish_in_flight", "a snapshot was dispatched and never acknowledged",
              attempt_ended_with_a_publish_in_flight},
    Situation{"the_floor_is_lowered", "a start below what was acknowledged, and it is said why",
              [](const Case& run) { return count(run, EventKind::floor_lowered) > 0; }},
    Situation{"the_power_takes_what_was_not_synced", "a node is lost with its caches",
              [](const Case& run) {
                return any(run, EventKind::node_lost, [](const Event& event) { return event.b == 1 || event.c == 1; });
              }},
    Situation{"the_restart_budget_is_spent", "the run gives up, in words",
              [](const Case& run) {
                return any(run, EventKind::run_ended, [](const Event& event) { return event.a == 0; });
              }},
    Situation{"training_begins_again", "an attempt behind a failure finds no checkpoint yet",
              fresh_start_behind_a_failure},
    Situation{"two_faults_take_ranks_in_one_attempt", "the second one hits an attempt that is ending",
              two_deaths_in_one_attempt},
    Situation{"two_nodes_are_lost", "in one run",
              [](const Case& run) { return count(run, EventKind::node_lost) >= 2; }},
    Situation{"two_recoveries_die", "faults end two attempts before their first step", recovery_died_twice},
};
static_assert(all.size() <= situations_max);

}  // namespace

std::span<const Situation> situations() { return all; }

SituationSet situations_in(const Case& run) {
  SituationSet set;
  for (std::size_t i = 0; i < all.size(); ++i) set[i] = all[i].happened(run);
  return set;
}

}  // namespace firedrill
