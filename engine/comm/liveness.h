// Liveness: from the signs of life of all ranks of an attempt, who is to blame for it that the work does not go on. The
// same for both worlds; the world feeds in what it hears and asks from time to time. Pure: no clock, no signal.
//
// Told apart, each within Limits of its last good sign:
//   stopped   nothing is heard of the rank any more (it is also said so where nobody waits for it)
//   stuck     signs of life come, the work of its main task does not go on, and it waits for nobody
//   slow      its work goes on, and a peer has waited for it in one single wait for `patience` deadlines
//   unknown   ranks wait for each other in a ring, or all of them for a key: some message or call is missing. The guard
//             of the collectives knows more, where it is on
// A rank whose process is gone needs no watchdog. One that has not said anything yet has `start_patience` for it.
//
// The deadline of a wait counts from the last progress of the rank that is waited for in the end: a save on a slow disk
// may outlast many deadlines while each of its calls ends within one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/job/job.h"
#include "engine/seam/event.h"
#include "engine/seam/pulse.h"

namespace firedrill {

struct Heartbeat {
  PulseReading pulse;       // of the main task
  std::uint64_t beats = 0;  // how many there have been: goes up whatever the main task does
};

// What real systems have got wrong about liveness; a mutant overrides one of these. No state, any thread.
class LivenessRules {
 public:
  virtual ~LivenessRules() = default;
  // The count that shows that a rank's work goes on.
  virtual std::uint64_t progress_of(const Heartbeat& heartbeat) const { return heartbeat.pulse.progress; }
  // Whether a rank is looked at while a peer waits for it.
  virtual bool looks_at_awaited() const { return true; }
  // Whether progress of the rank that is waited for extends a wait.
  virtual bool progress_extends_waits() const { return true; }
  // The number under which the ranks of an attempt meet. `host_starts`: how often the rank's own host has started
  // ranks.
  virtual int rendezvous_number(int attempt, int /*host_starts*/) const { return attempt; }
  // Whether a rank that ended has done its work. `said_so`: its last word was that it has.
  virtual bool completed(bool said_so, int /*exit_code*/) const { return said_so; }
};

struct LivenessLimits {
  static constexpr int patience = patience_in_deadlines;
  static constexpr std::chrono::seconds start_patience{10};

  Duration deadline{0};
  Duration heartbeat{0};

  static LivenessLimits of(const Cluster& cluster) {
    return {.deadline = cluster.deadline, .heartbeat = cluster.heartbeat};
  }
  // By how much a rank's own deadlines lie behind those of the watchdog.
  Duration backstop() const { return patience * deadline + 2 * heartbeat; }
  // How often the world looks: a late look must not cost a large share of the deadline.
  Duration period() const { return std::min(heartbeat, std::max<Duration>(deadline / 4, Duration{1})); }
};

// `rank` is -1 where none can be named.
struct Alarm {
  int rank = -1;
  Suspicion suspicion = Suspicion::unknown;
  std::string waited_for;  // "rank 0 has waited for rank 2 for 2s": what led there
  PulseReading last;       // of the blamed rank, or of the one that waits
};
std::string describe(const Alarm& alarm);

class Watchdog {
 public:
  Watchdog(int ranks, const LivenessLimits& limits, const LivenessRules& rules, Time now);

  void heard(int rank, const Heartbeat& heartbeat, Time now);
  void ended(int rank) { ranks_[static_cast<std::size_t>(rank)].live = false; }
  // The first reason to end the attempt that there is now.
  std::optional<Alarm> look(Time now) const;

 private:
  struct Watched {
    bool live = true;
    bool begun = false;  // it has been heard of
    std::uint64_t progress = 0;
    PulseReading pulse;
    Time heard{0};       // when it last said anything
    Time progressed{0};  // when its count was last seen to have changed
  };
  const Watched& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  bool awaited(int rank) const;
  int culprit_of(int rank) const;
  std::optional<Alarm> look_at(int rank, Time now) const;
  std::optional<Alarm> look_at_wait(int rank, Time now) const;
  Time last_progress() const;

  LivenessLimits limits_;
  const LivenessRules& rules_;
  std::vector<Watched> ranks_;
};

}  // namespace firedrill
