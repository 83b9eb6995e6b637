// Rerun: every kernel of a step is computed twice from the same inputs, and a result is kept only if both are the same
// bits (layout.rerun). Kernels are pure, so a difference is damage: of a unit that computes wrongly now and then, or of
// memory. It cannot say which of the two is right, and does not see what is wrong both times. Changes no bits; costs a
// second computation of everything and the copy that an update in place would have saved.
//
// verify_state is its other half: before a step the digest of every parameter and moment is computed again and compared
// with the one of when it was made, so that both computations do not start from the same damage.
#pragma once

#include "engine/seam/compute.h"
#include "engine/seam/observer.h"
#include "engine/seam/position.h"
#include "engine/train/rules.h"
#include "engine/train/state.h"

namespace firedrill {

// Errors: corrupted (event rerun_differed names the kernel), and those of the compute seam below, which must hold
// whatever may damage a result.
class RerunCompute final : public ForwardingCompute {
 public:
  RerunCompute(Compute& inner, const TrainingRules& rules, const Position& position, Observer& observer)
      : ForwardingCompute(inner), rules_(rules), position_(position), observer_(observer) {}
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override;

 private:
  const TrainingRules& rules_;
  const Position& position_;
  Observer& observer_;
};

// Errors: corrupted, naming the segment; those of the compute seam.
Status verify_state(Compute& compute, const Model& model, const TrainingState& state);

}  // namespace firedrill
