// The jobs of scenarios/jobs as values, for tests of rooms that cannot read YAML. A test of harness/run holds them
// against the files.
#pragma once

#include <vector>

#include "engine/job/job.h"

namespace firedrill {

inline std::vector<Job> shipped_jobs() {
  const OptimizerSpec adamw{.lr = 0.003, .warmup_steps = 4, .decay = Decay::cosine, .weight_decay = 0.1, .clip = 1.0};
  Job nano;
  nano.name = "nano";
  nano.model = {.layers = 1, .width = 12, .heads = 2, .sequence = 16, .dropout = 0.1};
  nano.lanes = {.dp = 4};
  nano.batch = {.lane_micro_batch = 2, .accumulation = 1};
  nano.optimizer = adamw;
  nano.steps = 12;

  Job tiny = nano;
  tiny.name = "tiny";
  tiny.model = {.layers = 2, .width = 32, .heads = 4, .sequence = 32, .dropout = 0.1};
  tiny.batch.accumulation = 2;
  tiny.optimizer.lr = 0.002;
  tiny.precision.scaler = {.dynamic = true, .initial_scale = 1024, .growth_interval = 4};

  Job small = nano;
  small.name = "small";
  small.model = {.layers = 2, .width = 192, .heads = 6, .sequence = 32, .dropout = 0.0};
  small.lanes = {};
  small.data.last_batch = LastBatch::drop;
  small.data.held_out = 0.1;
  small.batch = {.lane_micro_batch = 16, .accumulation = 1};
  small.optimizer.lr = 0.002;
  small.optimizer.warmup_steps = 20;
  small.steps = 300;

  Job hybrid = nano;
  hybrid.name = "nano-hybrid";
  hybrid.model = {.layers = 4, .width = 16, .heads = 2, .sequence = 16, .dropout = 0.1};
  hybrid.lanes = {.dp = 4, .tp = 2, .cp = 2};
  hybrid.batch = {.lane_micro_batch = 1, .accumulation = 2};

  Job experts = hybrid;
  experts.name = "moe-nano";
  experts.model = {.layers = 2, .width = 16, .heads = 2, .hidden = 16, .sequence = 16, .dropout = 0.1, .experts = 8};

  Job mixed = hybrid;
  mixed.name = "nano-mixed";
  mixed.model = {.layers = 2, .width = 12, .heads = 2, .sequence = 16, .dropout = 0.1, .tied_embedding = true};
  mixed.precision.parameters = Precision::fp16;
  mixed.precision.scaler = {.dynamic = true, .initial_scale = 0x1p24, .growth_interval = 2};
  return {nano, tiny, small, hybrid, experts, mixed};
}

}  // namespace firedrill
