#include "harness/world/supervisor.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/world/recovery_policy.h"

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
  for (const Event& event : history.events().subspan(from)) {
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

Result<RunOutcome> supervise(const Plan& plan, World& world, Observer& observer, const History& history,
                             const std::function<void()>& after_attempt) {
  RunOutcome outcome;
  std::vector<int> fired(plan.faults.size(), 0);
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    observer.event(world_event(EventKind::fault_planned, 0, static_cast<std::int64_t>(i), 0,
                               observer.intern(describe(plan.faults[i]))));
  }
  NameId rejected = 0;  // by any attempt so far; one may die between that and its start below the floor
  RecoveryState recovery(plan);
  std::vector<Ending> endings;
  std::string given_up;  // why there is no further attempt, though the budget has one
  for (int attempt = 1; attempt <= plan.recovery.budget + 1; ++attempt) {
    const std::size_t from = history.size();
    AttemptOrder order = recovery.next(attempt);
    order.floor = outcome.floor;
    order.fired = fired;
    const Layout& layout = plan.layout_if(order.other_layout);
    const int world_size = layout.world_size();
    Event started =
        world_event(EventKind::attempt_started, attempt, world_size, outcome.floor, observer.intern(to_string(layout)));
    started.detail = observer.intern(recovery.nodes_in_words());
    observer.event(started);
    FD_TRY(const AttemptResult result, world.run_attempt(order));
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
    if (after_attempt) after_attempt();
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
    endings.push_back(ending_of(history, from, attempt));
    if (const std::string poison = poison_in(endings); !poison.empty()) {
      observer.event(world_event(EventKind::note, attempt, 0, 0, observer.intern(poison)));
    }
    if (const auto why = recovery.take(endings.back())) {
      given_up = *why;
      break;
    }
  }
  if (!outcome.finished && !outcome.check_failed && !outcome.unprovoked) {
    const std::string poison = poison_in(endings);
    const std::string why =
        given_up.empty() ? fmt::format("the restart budget of {} is spent", plan.recovery.budget) : given_up;
    outcome.why = poison.empty() ? fmt::format("{}; the last attempt ended because: {}", why, outcome.why)
                                 : fmt::format("{}: {}", why, poison);
  }
  observer.event(world_event(EventKind::run_ended, outcome.attempts, outcome.finished ? 1 : 0, outcome.attempts,
                             observer.intern(outcome.why)));
  return outcome;
}

}  // namespace firedrill
