// Drills: real processes, real kills, on a shrunken copy of the job in the intended layout and world size, with the
// checkpoints in the intended directory. Each must end equal to the golden, bit for bit.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/plan.h"
#include "harness/preflight/check.h"
#include "harness/report/report.h"

namespace firedrill::preflight {

// The same lanes, kinds of layers and checkpoint policy, in few and small layers and few steps. A shape that cannot be
// shrunk so (an odd number of lanes) keeps its own.
Job shrunken(const Job& job, const Layout& layout);

struct Drill {
  std::string name;  // "lose-a-node"
  std::vector<FaultSpec> faults;
  bool must_fire = true;  // else a job may not have that phase
};
// One of each kind.
std::vector<Drill> drills_of(const Job& job, const Layout& layout);
// The loss of a rank in every phase.
std::vector<Drill> phase_drills();

Plan plan_of(const Drill& drill, const Job& job, const Layout& layout);
// Pure: what a drill's report says of the machine.
std::vector<Finding> judge_drill(const Drill& drill, const RunReport& report);

// Runs them one behind the other, each in a folder of its own under a new one in the directory. What did not end well
// is kept there, and its finding says where; all else is removed.
CheckResult run_drills(Bench& bench, const std::vector<Drill>& drills);

}  // namespace firedrill::preflight
