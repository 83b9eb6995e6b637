// For the tests of this folder: nano as a base of explorations, and weights of few kinds.
#pragma once

#include <initializer_list>
#include <vector>

#include "engine/base/check.h"
#include "engine/model/numerics.h"
#include "harness/explore/swarm/swarm.h"

namespace firedrill {

inline Plan nano_base() {
  pin_numerics();  // or a result depends on where its values lie in memory
  Loaded<Job> job = load_job("scenarios/jobs/nano.yaml");
  FD_CHECK(static_cast<bool>(job), "{}", job.mistakes.empty() ? "no job" : job.mistakes.front());
  Plan plan;
  plan.scenario = "nano";
  plan.job = *job;
  plan.run_id = run_id_of(plan.job);
  plan.layout.dp = 4;
  return plan;
}

inline std::vector<KindWeight> only_kinds(std::initializer_list<FaultKind> kinds) {
  std::vector<KindWeight> weights;
  for (const FaultKindInfo& info : fault_kinds()) weights.push_back({info.kind, 0});
  for (const FaultKind kind : kinds) weights[static_cast<std::size_t>(kind)].weight = 1;
  return weights;
}

}  // namespace firedrill
