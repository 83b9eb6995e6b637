// failure_detected_in_time: a failure that nobody notices costs the whole machine, and so does an alarm without one.
//
// Verified: each journaled fault after which a rank cannot go on (it died, left, stopped or is stuck, or what peers
// wait for never comes) is followed within its bound by its end, by a suspicion, or by the attempt's end; a rank that
// left in mid-run never counts as one that finished; a rank told to leave has left or is gone when its grace time is
// over; the attempt ends soon after that, so no survivor is left waiting. And no attempt ends by a suspicion or a
// timeout unless a fault that explains it has fired in it: a rank that is slow within its bounds explains none. A rank
// that still finishes steps is not held up yet (what is stuck is its publish beside training), so the bound counts from
// the last of them; and where another rank goes by a fault of its own, or by a call that does not fit, the attempt ends
// by that. Not verified: that the right rank is blamed: attribution compares that with the plan. Times are virtual in
// the sim world and real in the process world, where the machine's own slowness is allowed for.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/base/units.h"
#include "faults/budget.h"
#include "harness/check/all.h"

namespace firedrill {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t finished = 0;  // outcome of rank_ended

// From the first bad end until the last rank is gone: they have some time to end by themselves before they are killed.
constexpr milliseconds all_gone{2'500 + 500};

struct Bounds {
  Duration noticed;
  Duration over;  // the attempt
};

std::optional<Bounds> bounds_of(const FaultSpec& fault, const Plan& plan) {
  const Cluster& cluster = plan.job.cluster;
  const Duration slack = plan.world == WorldKind::process ? milliseconds(1'000) : milliseconds(0);
  const Duration watched = cluster.deadline + 2 * cluster.heartbeat + slack;
  switch (info_of(fault.kind).harm) {
    case Harm::death: {
      const Duration noticed = std::max<Duration>(cluster.failure_detection, slack);
      return Bounds{.noticed = noticed, .over = noticed + all_gone + slack};
    }
    case Harm::silence: return Bounds{.noticed = watched, .over = watched + all_gone + slack};
    // A rank that is killed at its end leaves its peers as any dead one does.
    case Harm::leave: {
      const Duration noticed = cluster.grace + 2 * cluster.heartbeat + slack;
      return Bounds{.noticed = noticed, .over = noticed + all_gone + slack};
    }
    default: return std::nullopt;
  }
}

bool explains_an_alarm(const FaultSpec& fault, const Job& job) {
  if (fault.kind == FaultKind::slow) return !slows_within_bound(fault, job);
  const Harm harm = info_of(fault.kind).harm;
  // Whoever misses a message, or a call that fits, waits in vain.
  const bool leaves_waiting = harm == Harm::message || harm == Harm::call;
  return takes_ranks(fault.kind) || leaves_waiting || harm == Harm::error;
}

class Detection {
 public:
  explicit Detection(const Case& run) : run_(run) {}

  Verdict judge() {
    for (const AttemptSpan& attempt : run_.attempts()) {
      ++checked_;
      std::string wrong = faults_of(attempt);
      if (wrong.empty()) wrong = alarms_of(attempt);
      if (!wrong.empty()) return Verdict::fail(checked_, std::move(wrong));
    }
    return Verdict::pass(checked_, fmt::format("faults to detect: {}", faults_));
  }

 private:
  std::string faults_of(const AttemptSpan& attempt) {
    for (const std::uint32_t position : run_.of(EventKind::fault_fired, attempt.begin, attempt.end)) {
      const Event& event = run_.event(position);
      const FaultSpec* const fault = run_.fault(event);
      const std::optional<Bounds> bounds = fault ? bounds_of(*fault, run_.plan()) : std::nullopt;
      if (!bounds) continue;
      ++checked_;
      ++faults_;
      std::string wrong = fault_at(attempt, position, *fault, *bounds);
      if (!wrong.empty()) return fmt::format("{}: {}: {}", place_of(event), describe(*fault), wrong);
    }
    return {};
  }

  // What may tell of a fault behind it, up to the end of its attempt.
  std::vector<std::uint32_t> signs_behind(const AttemptSpan& attempt, std::size_t position) const {
    const auto ends = run_.of(EventKind::attempt_ended, position + 1, attempt.end);
    const std::size_t end = ends.empty() ? attempt.end : ends.front() + 1;
    std::vector<std::uint32_t> signs;
    for (const EventKind kind : {EventKind::rank_ended, EventKind::step_done, EventKind::preempt_agreed,
                                 EventKind::suspected, EventKind::attempt_ended}) {
      const auto of_kind = run_.of(kind, position + 1, end);
      signs.insert(signs.end(), of_kind.begin(), of_kind.end());
    }
    std::ranges::sort(signs);
    return signs;
  }

  std::string fault_at(const AttemptSpan& attempt, std::size_t position, const FaultSpec& fault,
                       const Bounds& bounds) const {
    const Event& fired = run_.event(position);
    const Harm harm = info_of(fault.kind).harm;
    const bool leaves = harm == Harm::leave;
    const bool silent = harm == Harm::silence;
    Time since = fired.time;
    const Event* noticed = nullptr;
    const Event* over = nullptr;
    for (const std::uint32_t i : signs_behind(attempt, position)) {
      const Event& event = run_.event(i);
      const bool own_end = event.kind == EventKind::rank_ended && event.rank == fired.rank;
      if (own_end && event.a == finished && !leaves) return "the rank counts as one that has finished";
      const bool goes_on = silent && event.kind == EventKind::step_done && event.rank == fired.rank;
      if (!noticed && goes_on) since = event.time;
      const bool agreed = leaves && event.kind == EventKind::preempt_agreed;
      const bool other_end = silent && !own_end && ended_by_another_fault(attempt, i);
      if (!noticed && (own_end || agreed || other_end || event.kind == EventKind::suspected)) noticed = &event;
      if (event.kind == EventKind::attempt_ended) over = &event;
    }
    if (!noticed) noticed = over;
    if (!noticed || !over) return "nobody ever noticed";
    if (const Duration after = noticed->time - since; after > bounds.noticed) {
      return fmt::format("noticed after {}, and the bound is {}",
                         format_duration(std::chrono::round<std::chrono::milliseconds>(after)),
                         format_duration(bounds.noticed));
    }
    if (const Duration after = over->time - since; after > bounds.over) {
      return fmt::format("the attempt was over after {}, and the bound is {}: survivors were left waiting",
                         format_duration(std::chrono::round<std::chrono::milliseconds>(after)),
                         format_duration(bounds.over));
    }
    return {};
  }

  // Not by what it waited for.
  bool ended_by_another_fault(const AttemptSpan& attempt, std::size_t position) const {
    const Event& end = run_.event(position);
    if (end.kind != EventKind::rank_ended || end.a == finished) return false;
    const std::string_view code = run_.history().text(end.detail);
    if (code == to_string(Code::timeout)) return false;
    // Whoever is silent makes no call that others could disagree with, and damages no file.
    for (const Code other : {Code::mismatch, Code::corrupted, Code::io_error, Code::no_space}) {
      if (code == to_string(other)) return true;
    }
    return std::ranges::any_of(run_.of(EventKind::fault_fired, attempt.begin, position),
                               [&](std::uint32_t fired) { return run_.event(fired).rank == end.rank; });
  }

  std::string alarms_of(const AttemptSpan& attempt) const {
    const std::size_t until = explained_from(attempt);
    const auto suspected = run_.of(EventKind::suspected, attempt.begin, until);
    for (const std::uint32_t position : run_.of(EventKind::rank_ended, attempt.begin, until)) {
      const Event& event = run_.event(position);
      if (!suspected.empty() && suspected.front() < position) break;
      if (run_.history().text(event.detail) != to_string(Code::timeout)) continue;
      return fmt::format("{}: it waited in vain, and no fault that explains it has fired: {}", place_of(event),
                         run_.history().text(event.name));
    }
    if (suspected.empty()) return {};
    const Event& event = run_.event(suspected.front());
    return fmt::format("false alarm in attempt {}: {} is called {}, and no fault that explains it has fired ({})",
                       attempt.number, event.a < 0 ? "no rank" : fmt::format("rank {}", event.a),
                       to_string(static_cast<Suspicion>(event.b)), run_.history().text(event.detail));
  }

  // From the first fault of the attempt on that explains an alarm.
  std::size_t explained_from(const AttemptSpan& attempt) const {
    for (const std::uint32_t position : run_.of(EventKind::fault_fired, attempt.begin, attempt.end)) {
      const FaultSpec* const fault = run_.fault(run_.event(position));
      if (fault && explains_an_alarm(*fault, run_.plan().job)) return position;
    }
    return attempt.end;
  }

  const Case& run_;
  std::int64_t checked_ = 0;
  std::int64_t faults_ = 0;
};

}  // namespace

Verdict judge_failure_detected_in_time(const Case& run) { return Detection(run).judge(); }

}  // namespace firedrill
