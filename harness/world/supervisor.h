// Supervisor: starts attempts until the job is finished or the restart budget is spent. It keeps what must not lie on
// the disk under test: the floor (the highest acknowledged step) and how often each fault has fired.
#pragma once

#include <functional>

#include "harness/world/world.h"

namespace firedrill {

struct RunOutcome {
  bool finished = false;
  int attempts = 0;
  std::int64_t floor = -1;
  bool unprovoked = false;    // an attempt ended although no fault had fired in it
  bool check_failed = false;  // one of our own checks failed in a rank: a finding
  std::string why;            // why it gave up
};

// Writes fault_planned, attempt_started, attempt_ended, floor_lowered and run_ended through `observer`, which appends
// to `history`. `after_attempt` is called when all that an attempt gave is there; may be empty. Errors: those of the
// world itself.
Result<RunOutcome> supervise(const Plan& plan, World& world, Observer& observer, const History& history,
                             const std::function<void()>& after_attempt = {});

}  // namespace firedrill
