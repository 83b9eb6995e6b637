// Trigger: decides whether one planned fault hits a call. Counts by logical position only, so the same run is hit at
// the same calls however it is scheduled.
//
// Calls that match `at` are counted from 1 within one (attempt, step, phase); a phase that is left and entered again in
// the same step goes on counting. The fault fires at the nth one, and while `times` is not used up at those that follow
// it there. `times` counts over all attempts of the run.
#pragma once

#include <array>
#include <cstdint>

#include "engine/seam/position.h"
#include "faults/effects.h"
#include "faults/spec.h"

namespace firedrill {

class Trigger {
 public:
  // `fired_before`: how often the fault fired in earlier attempts. `spec` must outlive the trigger.
  Trigger(const FaultSpec& spec, int fired_before);

  // Whether any call of this rank in this attempt can still be hit.
  bool possible(int attempt, int rank) const;
  // Counts the call if it matches, and says whether the fault fires at it. Asked once for each call, before it.
  bool hit(const Position& position, const CallSite& call);
  // Matching calls of the phase so far, in the step of the last one.
  int counted(Phase phase) const { return counts_[static_cast<std::size_t>(phase)]; }
  void count_firing() { ++fired_; }
  bool used_up() const { return spec_->times > 0 && fired_ >= spec_->times; }

 private:
  bool matches(const Position& position, const CallSite& call) const;

  const FaultSpec* spec_;
  int fired_ = 0;
  std::int64_t step_ = -1;  // that `counts_` speaks of
  std::array<std::int32_t, phase_count> counts_{};
};

// Which operations the kind can be about at all; a call that it cannot be about is not counted. An empty path stands
// for any.
bool kind_fits(FaultKind kind, const CallSite& call);
// The first kind that fits the same calls in all cases: one list of places serves both.
FaultKind first_like(FaultKind kind);
// Whether the call computes what the fault is to damage.
bool target_fits(const FaultSpec& fault, const CallSite& call);

}  // namespace firedrill
