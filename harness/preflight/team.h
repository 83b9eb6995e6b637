// Team: real processes that measure something together, one for each rank, forked from the zygote like the ranks of a
// run. They are disposable: when no rank has said for the deadline what it does next, those that did not come back are
// killed, and what they were doing then is part of the answer. As long as one is at work it may take longer, all in all
// three times the deadline, for then the machine is busy and nothing hangs. One that cannot even be killed (a hung
// mount) is left behind: abandoned() says so, and the launcher must then not be destroyed, which would wait for it.
//
// Threads: one. Errors: unavailable (no process can be started), aborted (it was to stop).
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/os/launcher.h"
#include "harness/preflight/finding.h"
#include "harness/preflight/line.h"

namespace firedrill::preflight {

struct RankAnswer {
  Json measured;                             // absent (null) if it did not get to its end
  std::string trouble;                       // why; empty: it did
  std::string doing;                         // the last thing that it was about to do
  bool waiting = false;                      // it was waiting for the other ranks
  bool timed_out = false;                    // it was ended by the deadline
  std::optional<ProbeFailure> failure = {};  // by its own word what was looked at does not work; with trouble
};

class Team {
 public:
  explicit Team(Launcher& launcher) : launcher_(launcher) {}
  // Starts `ranks` processes, lets each do `work` (see rank.h), and returns what each had to say. `stop` is asked again
  // and again: true ends them.
  Result<std::vector<RankAnswer>> ask(const Json& work, int ranks, std::chrono::nanoseconds deadline,
                                      const std::function<bool()>& stop = {});
  bool abandoned() const { return abandoned_; }

 private:
  Launcher& launcher_;
  int asked_ = 0;
  bool abandoned_ = false;
};

// Of ranks that did not come back: the one that the others waited for; -1: all did.
int culprit_of(const std::vector<RankAnswer>& answers);
// What is wrong with it, as a finding that the check could not tell, or that it is a no-go because it hung.
std::vector<Finding> troubles_of(const std::vector<RankAnswer>& answers, const std::string& where,
                                 std::chrono::nanoseconds deadline, const std::string& remedy);

}  // namespace firedrill::preflight
