#include "harness/world/sim_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/sim/rank.h"

namespace firedrill {
namespace {

// As in the process world.
constexpr std::chrono::milliseconds told_after{500};
constexpr std::chrono::milliseconds killed_after{2'000};

}  // namespace

SimWatch::SimWatch(sim::Attempt& attempt, const Cluster& cluster, const LivenessRules& rules, Observer& observer,
                   Ranks of_ranks)
    : attempt_(attempt),
      grace_(cluster.grace),
      limits_(LivenessLimits::of(cluster)),
      observer_(observer),
      of_ranks_(std::move(of_ranks)),
      watchdog_(attempt.world_size(), limits_, rules, attempt.machine().now()),
      ranks_(static_cast<std::size_t>(attempt.world_size())),
      next_look_(attempt.machine().now() + limits_.period()) {}

Status SimWatch::run() {
  listen();
  for (;;) {
    const Time until = next_duty();
    const sim::RunStop why = attempt_.run_until(until);
    if (attempt_.ended()) return {};
    if (nobody_can_go_on(why)) {
      Error error{.code = Code::timeout,
                  .message = fmt::format("attempt {} is in a deadlock at {} ns: {}", attempt_.number(), now().count(),
                                         attempt_.describe_waiting())};
      attempt_.kill_started();
      return error;
    }
    attempt_.machine().scheduler().pass_until(until);
    if (now() >= next_look_) look();
    press_on();
  }
}

// All that is left waits without end, and for nothing that a look could bring about.
bool SimWatch::nobody_can_go_on(sim::RunStop why) {
  if (why != sim::RunStop::stuck) {
    still_since_ = sim::never;
    return false;
  }
  bool awaits_a_look = killed_at_ != sim::never;
  for (int rank = 0; rank < attempt_.world_size(); ++rank) {
    awaits_a_look = awaits_a_look || (live(rank) && attempt_.rank(rank).halted());
  }
  if (!awaits_a_look) return true;
  still_since_ = std::min(still_since_, now());
  return now() - still_since_ > 3 * limits_.backstop();
}

Time SimWatch::next_duty() const {
  Time next = std::min(next_look_, killed_at_);
  for (int rank = 0; rank < attempt_.world_size(); ++rank) {
    if (live(rank)) next = std::min(next, ranks_[static_cast<std::size_t>(rank)].kill_at);
  }
  return std::max(next, now());
}

void SimWatch::look() {
  next_look_ = now() + limits_.period();
  listen();
  if (killed_at_ != sim::never) return;
  if (const std::optional<Alarm> found = watchdog_.look(now())) blame(*found);
}

// Every rank that can gives a sign of life.
void SimWatch::listen() {
  ++beats_;
  for (int rank = 0; rank < attempt_.world_size(); ++rank) {
    if (!live(rank)) {
      watchdog_.ended(rank);
    } else if (!attempt_.rank(rank).frozen()) {
      watchdog_.heard(rank, {.pulse = of_ranks_.pulse_of(rank), .beats = beats_}, now());
    }
  }
}

void SimWatch::blame(const Alarm& found) {
  blame_ = describe(found);
  // A rank that has fallen silent still shows where it is.
  const PulseReading last = found.rank >= 0 ? of_ranks_.pulse_of(found.rank) : found.last;
  observer_.event(Event{.kind = EventKind::suspected,
                        .phase = last.phase,
                        .attempt = attempt_.number(),
                        .step = last.step,
                        .a = found.rank,
                        .b = static_cast<std::int64_t>(found.suspicion),
                        .c = -1,
                        .detail = observer_.intern(found.waited_for)});
  if (found.suspicion == Suspicion::stopped || found.suspicion == Suspicion::stuck) {
    kill(found.rank, fmt::format("it was {}, and was killed", to_string(found.suspicion)));
  }
  attempt_.abort(Error{.code = Code::aborted, .message = blame_});
  killed_at_ = now() + killed_after;
}

void SimWatch::press_on() {
  for (int rank = 0; rank < attempt_.world_size(); ++rank) {
    if (!live(rank)) continue;
    Watched& watched = ranks_[static_cast<std::size_t>(rank)];
    if (now() >= watched.kill_at) {
      kill(rank, "its grace time was over, and it was killed");
    } else if (now() >= killed_at_) {
      kill(rank, "it did not end when it was told to, and was killed");
    }
  }
}

void SimWatch::kill(int rank, const std::string& why) {
  ranks_[static_cast<std::size_t>(rank)].why_killed = why;
  of_ranks_.before_kill(rank);
  attempt_.kill_rank(rank);
}

void SimWatch::preempted(int rank) {
  Watched& watched = ranks_[static_cast<std::size_t>(rank)];
  watched.kill_at = std::min(watched.kill_at, now() + grace_);
}

void SimWatch::ended_badly() { killed_at_ = std::min(killed_at_, now() + told_after + killed_after); }

}  // namespace firedrill
