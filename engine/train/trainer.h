// Trainer: one training step of one rank. It computes the lane micro-batches of the lanes it owns, agrees with its
// peers on the gradients, and updates. Everything is per lane and by fixed trees, so that no layout changes a bit.
//
// Nothing of a step is kept unless every part of it succeeded on this rank: after an error the trainer is at its end.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/sampler.h"
#include "engine/job/layout.h"
#include "engine/seam/parts.h"
#include "engine/train/grad_norm.h"
#include "engine/train/state.h"

namespace firedrill {

struct StepReport {
  float loss = 0;        // mean over the present tokens of the global batch, nats
  double norm = 0;       // of the gradients, before clipping
  bool skipped = false;  // gradients overflowed on some rank: every rank skipped the update
};

class Trainer {
 public:
  // `text` is the training part of the corpus.
  Trainer(const Job& job, const Layout& layout, const Model& model, const Sampler& sampler, Value text, Parts& parts,
          TrainingState state);

  // Computes step state().counters.step + 1. Errors: those of the seams; the trainer must not be used
  // again after one.
  Result<StepReport> step();

  const TrainingState& state() const { return state_; }
  // The state as a list, made new after each step.
  const StateView& view();
  // Events `step_done` and, if it is new, the digests of all tensors.
  Digest announce(const StepReport& report);

 private:
  struct MicroBatch {
    Value tokens;
    Value mask;
  };
  struct LaneGradients {
    Value loss;                   // sum of token losses over the lane's micro-batches
    std::vector<Value> segments;  // accumulated, by segment
  };

  Result<MicroBatch> draw(int lane, int micro);
  Result<LaneGradients> compute_lane(LaneState& lane, float factor);
  Status accumulate(const MicroBatch& batch, const RandomCounter& random, float factor, LaneGradients& sums);
  // The sums over all dp lanes: a pack of the segments' gradients and, last, the loss.
  Result<Value> exchange(std::vector<LaneGradients> lanes);
  Result<GradientDecision> decide(const Value& sums);
  Status update(const GradientDecision& decision, Value sums, TrainingState& next);
  Result<Value> add(Value left, Value right);
  Call call(std::string_view purpose) const;

  const Job& job_;
  const Model& model_;
  const Sampler& sampler_;
  Value text_;
  Parts& parts_;
  Groups groups_;
  TrainingState state_;
  StateView view_;
  bool view_fresh_ = false;
};

}  // namespace firedrill
