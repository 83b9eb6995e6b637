#include "engine/comm/liveness.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/units.h"

namespace firedrill {
namespace {

std::string name_of(int rank) {
  return rank == PulseReading::store ? "a key of its peers" : fmt::format("rank {}", rank);
}

// To the millisecond: a watchdog sees no finer.
std::string in_words(Duration duration) {
  return format_duration(std::chrono::round<std::chrono::milliseconds>(duration));
}

}  // namespace

std::string describe(const Alarm& alarm) {
  if (alarm.rank < 0) return fmt::format("no rank can be blamed: {}", alarm.waited_for);
  return fmt::format("rank {} is {}: {}", alarm.rank, to_string(alarm.suspicion), alarm.waited_for);
}

Watchdog::Watchdog(int ranks, const LivenessLimits& limits, const LivenessRules& rules, Time now)
    : limits_(limits),
      rules_(rules),
      ranks_(static_cast<std::size_t>(ranks), Watched{.heard = now, .progressed = now}) {}

void Watchdog::heard(int rank, const Heartbeat& heartbeat, Time now) {
  Watched& watched = ranks_[static_cast<std::size_t>(rank)];
  watched.heard = now;
  const std::uint64_t progress = rules_.progress_of(heartbeat);
  if (!watched.begun || progress != watched.progress || heartbeat.pulse.waits_for != watched.pulse.waits_for)
    watched.progressed = now;
  watched.begun = true;
  watched.progress = progress;
  watched.pulse = heartbeat.pulse;
}

bool Watchdog::awaited(int rank) const {
  return std::ranges::any_of(ranks_, [rank](const Watched& other) {
    return other.live && (other.pulse.waits_for == rank || other.pulse.waits_for == PulseReading::store);
  });
}

std::optional<Alarm> Watchdog::look(Time now) const {
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (!at(rank).live || (!rules_.looks_at_awaited() && awaited(rank))) continue;
    if (auto alarm = look_at(rank, now)) return alarm;
  }
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (!at(rank).live || at(rank).pulse.waits_for == PulseReading::nobody || !rules_.looks_at_awaited()) continue;
    if (auto alarm = look_at_wait(rank, now)) return alarm;
  }
  return std::nullopt;
}

std::optional<Alarm> Watchdog::look_at(int rank, Time now) const {
  const Watched& one = at(rank);
  const Duration silence =
      one.begun ? limits_.deadline : std::max<Duration>(limits_.deadline, LivenessLimits::start_patience);
  if (now - one.heard > silence) {
    return Alarm{.rank = rank,
                 .suspicion = Suspicion::stopped,
                 .waited_for = fmt::format("no sign of life for {}", in_words(now - one.heard)),
                 .last = one.pulse};
  }
  if (!one.begun || one.pulse.waits_for != PulseReading::nobody || now - one.progressed <= limits_.deadline)
    return std::nullopt;
  return Alarm{.rank = rank,
               .suspicion = Suspicion::stuck,
               .waited_for = fmt::format("it lives and has done nothing for {}", in_words(now - one.progressed)),
               .last = one.pulse};
}

// The rank for which `rank` waits in the end: one that waits for nobody, or -1 if there is none.
int Watchdog::culprit_of(int rank) const {
  for (std::size_t steps = 0; steps <= ranks_.size(); ++steps) {
    const int next = at(rank).pulse.waits_for;
    if (next == PulseReading::nobody) return rank;
    if (next == PulseReading::store) {
      // Whoever has not come to its own wait yet.
      for (int other = 0; other < static_cast<int>(ranks_.size()); ++other) {
        if (at(other).live && at(other).pulse.waits_for == PulseReading::nobody) return other;
      }
      return -1;
    }
    if (!at(next).live) return -1;
    rank = next;
  }
  return -1;
}

Time Watchdog::last_progress() const {
  Time last{0};
  for (const Watched& one : ranks_) {
    if (one.live) last = std::max(last, one.progressed);
  }
  return last;
}

std::optional<Alarm> Watchdog::look_at_wait(int rank, Time now) const {
  const Watched& waiter = at(rank);
  const Duration waited = now - waiter.progressed;
  if (waited <= limits_.deadline) return std::nullopt;
  Alarm alarm{.rank = culprit_of(rank),
              .waited_for = fmt::format("rank {} has waited for {} for {}", rank, name_of(waiter.pulse.waits_for),
                                        in_words(waited)),
              .last = waiter.pulse};
  if (alarm.rank >= 0) {
    if (rules_.progress_extends_waits() && waited <= LivenessLimits::patience * limits_.deadline) return std::nullopt;
    alarm.suspicion = Suspicion::slow;
    alarm.last = at(alarm.rank).pulse;
    return alarm;
  }
  if (now - last_progress() <= limits_.deadline) return std::nullopt;
  return alarm;
}

}  // namespace firedrill
