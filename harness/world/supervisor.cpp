#include "harness/world/supervisor.h"

#include <fmt/format.h>

#include <algorithm>

namespace firedrill {
namespace {

// What the supervisor learns from the events of one attempt, as it would from its ranks' reports.
struct Learned {
  int faults_fired = 0;
  std::int64_t acknowledged = -1;
  std::int64_t found = -1;
  NameId rejected = 0;
};

Learned learn(const History& history, std::size_t from, std::vector<int>& fired) {
  Learned learned;
  for (std::size_t i = from; i < history.size(); ++i) {
    const Event& event = history[i];
    switch (event.kind) {
      case EventKind::acknowledged: learned.acknowledged = std::max(learned.acknowledged, event.step); break;
      case EventKind::restored: learned.found = event.a; break;
      case EventKind::rejected: learned.rejected = event.name; break;
      case EventKind::fault_fired:
        ++fired[static_cast<std::size_t>(event.a)];
        ++learned.faults_fired;
        break;
      default: break;
    }
  }
  return learned;
}

Event world_event(EventKind kind, int attempt, std::int64_t a, std::int64_t b, NameId name) {
  return Event{.kind = kind, .attempt = attempt, .a = a, .b = b, .name = name};
}

}  // namespace

Result<RunOutcome> supervise(const Plan& plan, World& world, Observer& observer, const History& history) {
  RunOutcome outcome;
  std::vector<int> fired(plan.faults.size(), 0);
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    observer.event(world_event(EventKind::fault_planned, 0, static_cast<std::int64_t>(i), 0,
                               observer.intern(describe(plan.faults[i]))));
  }
  NameId rejected = 0;  // by any attempt so far; one may die between that and its start below the floor
  for (int attempt = 1; attempt <= plan.recovery.budget + 1; ++attempt) {
    const std::size_t from = history.size();
    const int world_size = plan.layout_of(attempt).world_size();
    observer.event(world_event(EventKind::attempt_started, attempt, world_size, outcome.floor,
                               observer.intern(to_string(plan.layout_of(attempt)))));
    FD_TRY(const AttemptResult result, world.run_attempt({.attempt = attempt, .floor = outcome.floor, .fired = fired}));
    Event ended = world_event(EventKind::attempt_ended, attempt, result.died, result.failed + result.broken,
                              observer.intern(result.why));
    ended.c = result.finished;
    observer.event(ended);
    outcome.attempts = attempt;
    const Learned learned = learn(history, from, fired);
    if (learned.rejected != 0) rejected = learned.rejected;
    if (rejected != 0 && learned.found >= 0 && learned.found < outcome.floor) {
      observer.event(world_event(EventKind::floor_lowered, attempt, outcome.floor, learned.found, rejected));
      outcome.floor = learned.found;
      rejected = 0;
    }
    outcome.floor = std::max(outcome.floor, learned.acknowledged);
    world.probe();
    if (result.broken > 0) outcome.check_failed = true;
    outcome.finished = result.finished == world_size;
    outcome.why = outcome.finished ? "the job finished" : result.why;
    if (outcome.finished || outcome.check_failed) break;
    // A restart would hide it: nothing that was planned explains this end.
    if (learned.faults_fired == 0 || result.stuck) {
      outcome.unprovoked = true;
      outcome.why = fmt::format("attempt {} {}: {}", attempt, result.stuck ? "waits for ever" : "ended without a fault",
                                result.why);
      break;
    }
  }
  if (!outcome.finished && !outcome.check_failed && !outcome.unprovoked) {
    outcome.why = fmt::format("the restart budget of {} is spent; the last attempt ended because: {}",
                              plan.recovery.budget, outcome.why);
  }
  observer.event(world_event(EventKind::run_ended, outcome.attempts, outcome.finished ? 1 : 0, outcome.attempts,
                             observer.intern(outcome.why)));
  return outcome;
}

}  // namespace firedrill
