// SimWatch: the supervisor of one attempt in the sim world, in virtual time: it looks at the pulses of all ranks every
// heartbeat, as a supervisor would take in their signs of life, blames by the same watchdog as in the process world,
// ends the attempt when one is to blame, and kills whose grace time is over. Deterministic: the looks lie at fixed
// virtual times and change nothing of the schedule.
//
// After the first bad end the others have the time that ranks of the process world have (told_after, killed_after).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/liveness.h"
#include "engine/seam/observer.h"
#include "engine/sim/machine.h"

namespace firedrill {

class SimWatch {
 public:
  struct Ranks {
    std::function<PulseReading(int rank)> pulse_of;  // of the rank's main task
    std::function<void(int rank)> before_kill;
  };
  // All must outlive the watch.
  SimWatch(sim::Attempt& attempt, const Cluster& cluster, const LivenessRules& rules, Observer& observer,
           Ranks of_ranks);

  // Until every rank has ended. Errors: timeout, as those of Attempt::run: all that was left waited without end.
  Status run();

  // What the worlds tell it.
  void preempted(int rank);
  void ended_badly();

  // Why the supervisor killed the rank; empty: it did not.
  const std::string& why_killed(int rank) const { return ranks_[static_cast<std::size_t>(rank)].why_killed; }
  // Why it ended the attempt; empty: it did not.
  const std::string& blame() const { return blame_; }

 private:
  struct Watched {
    Time kill_at = sim::never;  // its grace time is over then
    std::string why_killed;
  };
  bool live(int rank) const { return attempt_.end_of(rank) == sim::RankEnd::running; }
  Time now() const { return attempt_.machine().now(); }
  Time next_duty() const;
  void listen();
  void look();
  void blame(const Alarm& found);
  void press_on();
  void kill(int rank, const std::string& why);
  bool nobody_can_go_on(sim::RunStop why);

  sim::Attempt& attempt_;
  Duration grace_;
  LivenessLimits limits_;
  Observer& observer_;
  Ranks of_ranks_;
  Watchdog watchdog_;
  std::vector<Watched> ranks_;
  std::uint64_t beats_ = 0;
  Time next_look_;
  Time killed_at_ = sim::never;  // who has not ended then
  Time still_since_ = sim::never;
  std::string blame_;
};

}  // namespace firedrill
