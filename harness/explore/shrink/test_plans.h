// Plans for the tests of this folder.
#pragma once

#include <string>

#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "harness/run/random_faults.h"
#include "harness/run/run.h"

namespace firedrill {

inline Plan nano_plan() {
  Loaded<Scenario> loaded = load_scenario("scenarios/quickstart.yaml");
  FD_CHECK(static_cast<bool>(loaded), "{}", loaded.mistakes.empty() ? "?" : loaded.mistakes.front());
  return make_plan(*loaded);
}

// The quick start's job, and nothing that disturbs it.
inline Plan quiet_nano() {
  Plan plan = nano_plan();
  plan.faults.clear();
  return plan;
}

// Random faults in a random layout, with options of the job that are not plain.
inline Plan drawn_plan(std::uint64_t seed) {
  Rng rng(seed);
  Plan plan = quiet_nano();
  plan.layout.dp = 1 << rng.below(3);
  plan.layout.zero = static_cast<int>(rng.below(4));
  if (rng.chance(1, 2)) plan.recovery.layout = Layout{.dp = 1 << static_cast<int>(rng.below(3))};
  if (rng.chance(1, 2)) plan.job.checkpoint.mode = PublishMode::async;
  if (rng.chance(1, 2)) plan.job.checkpoint.catalog = CatalogKind::rocksdb;
  if (rng.chance(1, 2)) plan.layout.guard = Guard::check;
  plan.job.steps = 4 + static_cast<int>(rng.below(9));
  plan.run_id = run_id_of(plan.job);
  return random_faults(plan, seed);
}

// Holds a job with another option than its file's at every field that an explorer may change.
inline Plan varied_plan() {
  Plan plan = drawn_plan(3);
  plan.job.model.dropout = 0;
  plan.job.optimizer.clip = 0.5;
  plan.job.checkpoint.keep_validated = 1;
  plan.job.cluster.file_sync = std::chrono::milliseconds(4);
  plan.run_id = run_id_of(plan.job);
  return plan;
}

}  // namespace firedrill
