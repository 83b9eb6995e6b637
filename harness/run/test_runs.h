// For the tests of this folder: the quick start as a plan, and runs that must succeed.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/base/check.h"
#include "harness/run/random_kills.h"
#include "harness/run/run.h"

namespace firedrill {

inline Plan plan_of(const std::string& scenario) {
  Loaded<Scenario> loaded = load_scenario(scenario);
  FD_CHECK(static_cast<bool>(loaded), "{}", loaded.mistakes.empty() ? scenario : loaded.mistakes.front());
  return make_plan(*loaded);
}

// The quick start's job, and nothing that disturbs it.
inline Plan quiet_nano() {
  Plan plan = plan_of("scenarios/quickstart.yaml");
  plan.faults.clear();
  return plan;
}

inline Trial must_run(Session& session, const Plan& plan, bool with_digest = false) {
  Result<Trial> trial = session.trial(plan, with_digest);
  FD_CHECK(static_cast<bool>(trial), "{}", describe(trial.error()));
  return *trial;
}

inline std::string complaint(const Plan& plan, const Trial& trial) {
  std::string faults;
  for (const FaultSpec& fault : plan.faults) faults += describe(fault) + "; ";
  return fmt::format("seed {}: {}: {} (faults: {})", plan.seed, trial.property, trial.evidence, faults);
}

// Runs `base` in the process world with the kills that seeds 1 to `seeds` draw; each run must end equal to the golden.
// Returns how many kills fired.
inline std::size_t survive_drawn_kills_of_processes(Plan base, std::uint64_t seeds) {
  Session session({});
  base.world = WorldKind::process;
  std::size_t fired = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Plan plan = random_kills(base, seed);
    for (FaultSpec& fault : plan.faults) {
      fault.kind = FaultKind::kill;  // one machine has one node
      fault.lose_unsynced_data = fault.lose_unsynced_names = false;
    }
    const Result<RunReport> report = session.run(plan);
    EXPECT_TRUE(report) << describe(report.error());
    if (!report) break;
    EXPECT_EQ(report->verdict, RunVerdict::pass) << "seed " << seed << ": " << report->reason;
    EXPECT_EQ(report->final_digest, report->golden_digest) << "seed " << seed;
    fired += report->fired.size();
  }
  return fired;
}

}  // namespace firedrill
