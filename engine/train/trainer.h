// Trainer: one training step of one rank. It computes the lane micro-batches of the lanes it owns, agrees with its
// peers on the gradients, and updates. Everything is per lane and by fixed trees, so that no layout changes a bit; the
// whole of it is told in network.h.
//
// Nothing of a step is kept unless every part of it succeeded on this rank: after an error the trainer is at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/corpus_input.h"
#include "engine/data/sampler.h"
#include "engine/job/layout.h"
#include "engine/seam/parts.h"
#include "engine/train/grad_norm.h"
#include "engine/train/gradients.h"
#include "engine/train/memory_use.h"
#include "engine/train/network.h"
#include "engine/train/shape.h"
#include "engine/train/state.h"

namespace firedrill {

struct StepReport {
  float loss = 0;        // mean over the present tokens of the global batch, nats; without the routers' balance loss
  double norm = 0;       // of the gradients, before clipping
  bool skipped = false;  // gradients overflowed on some rank: every rank skipped the update
};

class Trainer {
 public:
  // `text` is the training part of the corpus. `shape` is this rank's, if somebody has it, and must outlive the
  // trainer.
  Trainer(const Job& job, const Layout& layout, const Model& model, const Sampler& sampler, Value text, Parts& parts,
          TrainingState state, const TrainingRules& rules = right_rules(), const DataSource& source = {},
          const RankShape* shape = nullptr);

  // Computes step state().counters.step + 1. Errors: those of the seams; the trainer must not be used
  // again after one.
  Result<StepReport> step();

  // The rank was asked to leave behind the next step.
  void will_leave() { leaving_ = true; }

  const TrainingState& state() const { return state_; }
  // In which a step that failed did.
  Phase last_phase() const { return last_phase_; }
  // The state as a list, made new after each step.
  const StateView& view();
  // Of the last step.
  const MemoryUse& memory() const { return memory_; }
  // Events `step_done`, `memory_used` where that has changed, and, if it is new, the digests of all tensors.
  Digest announce(const StepReport& report);

 private:
  // A unit on its way: what its backward needs.
  struct InFlight {
    Unit unit;
    int number = 0;             // of the unit in the step, the same on all stages
    std::vector<Value> inputs;  // of the model's pieces, as far as they are kept
    Value head;                 // what the head knows after its loss
  };

  PhaseScope enter(Phase phase);
  Status compute(float factor, GradientSums& sums);
  void account(const GradientSums& sums);
  Result<InFlight> draw(int unit, float factor);
  // The samples of a lane's micro-batch; -1 where the rules leave them out.
  Value samples_of(int lane, int micro) const;
  // The rows of these samples, verified.
  Result<Value> read(const Value& samples);
  Status forward(const Stage& stage, InFlight& flight, GradientSums& sums);
  // `last`: of all units, so that the gradients of each piece are complete behind it.
  Status backward(const Stage& stage, InFlight& flight, bool last, GradientSums& sums);
  // The input of a piece, computed once more where it was not kept.
  Result<Value> input_of(std::size_t piece, const Stage& stage, InFlight& flight);
  // The parameters of a piece whole, and with prefetch those of the one behind it.
  Status gather(std::size_t piece, std::size_t behind, const Stage& stage);
  bool first(const Stage& stage) const { return stage.begin == 0; }
  bool last(const Stage& stage) const { return stage.end == model_.pieces().size(); }
  int neighbour(int step) const;
  // What crosses the border in front of a piece, for a unit: no two of a step have one name.
  static std::string crossing(std::string_view what, const InFlight& flight, std::size_t piece);
  // Every rank learns every segment's sum of squares, and the loss.
  struct Agreement {
    std::vector<Value> squares;  // by segment
    Value loss;
    bool overflow_here = false;  // in the segments that this rank holds
  };
  Result<Agreement> agree(const StepSums& sums);
  Result<std::vector<Value>> own_squares(const StepSums& sums);
  Result<OptimizerState> update_segment(std::size_t segment, const AdamWStep& step, OptimizerState state,
                                        Value gradients);
  Status update(const GradientDecision& decision, StepSums sums, TrainingState& next);

  const Job& job_;
  const Layout& layout_;
  const Model& model_;
  const Sampler& sampler_;
  CorpusInput text_;
  DataSource source_;
  Parts& parts_;
  std::optional<RankShape> own_shape_;
  const RankShape& shape_;
  const Holdings& holdings_;
  const Groups& groups_;
  std::vector<Holdings> model_group_;  // of the members of groups_.model
  TrainingState state_;
  Parameters parameters_;
  NetworkContext context_;
  std::unique_ptr<Network> network_;
  StateView view_;
  bool view_fresh_ = false;
  HighWater activations_;  // of the step
  MemoryUse memory_;
  MemoryUse memory_told_;
  Phase last_phase_ = Phase::none;
  bool leaving_ = false;
};

}  // namespace firedrill
