// TrainingState: all that must survive a restart, and the one visitor that lists it. Saving, restoring, comparing and
// digesting go through blank_view() and fill_view(), so a field cannot be in one and missing in another.
#pragma once

#include <vector>

#include "engine/ckpt/state.h"
#include "engine/data/sampler.h"
#include "engine/job/layout.h"
#include "engine/model/transformer.h"
#include "engine/train/holdings.h"
#include "engine/train/optimizer.h"
#include "engine/train/scaler.h"

namespace firedrill {

// What is one number each, the same on every rank.
struct Counters {
  std::int64_t step = 0;             // completed
  std::int64_t optimizer_steps = 0;  // updates made: the bias corrections follow from it (skipped steps do not count)
  std::int64_t schedule_step = 0;    // where the learning-rate schedule stands
  std::int64_t micro_batches = 0;    // done in the open accumulation window; 0 at a step's end, where saves happen
  bool operator==(const Counters&) const = default;
};

struct LaneState {
  int lane = 0;
  RandomCounter random;
};

struct TrainingState {
  // Parameters and moments, in the model's order; empty where not held. The parameters of a 16-bit job are the fp32
  // masters: what kernels read is rounded from them and is no state.
  std::vector<OptimizerState> segments;
  Counters counters;
  SamplerState sampler;
  ScalerState scaler;
  std::vector<LaneState> lanes;  // of the dp lanes this rank owns, ascending
};

// The first moments, all zero, by segment; empty for what a rank does not hold.
std::vector<Value> initial_moments(const Model& model, const Holdings& holdings);
// A state before the first step. Runs the initialisation kernels.
Result<TrainingState> initial_state(Compute& compute, const Job& job, const Model& model, const SamplerState& sampler,
                                    const Holdings& holdings, std::span<const Value> moments);
inline Result<TrainingState> initial_state(Compute& compute, const Job& job, const Model& model,
                                           const SamplerState& sampler, const Holdings& holdings) {
  return initial_state(compute, job, model, sampler, holdings, initial_moments(model, holdings));
}

// What a rank saves and restores, as a list without values. `settings` of the optimizer's parameter groups are listed
// too, so that a checkpoint shows them.
StateView blank_view(const Model& model, const Holdings& holdings);

// Puts the state's values into a list that blank_view made for the same holdings.
void fill_view(const Job& job, const Holdings& holdings, const TrainingState& state, StateView& view);

// Takes the values of a restored list over. Errors: corrupted (a value that no state can have).
Result<TrainingState> state_from(const Job& job, const Model& model, const StateView& view, const Holdings& holdings);

}  // namespace firedrill
