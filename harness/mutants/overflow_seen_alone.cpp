// A rank skips an update when its own gradients overflowed, and nobody asks the others: those go on without it.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class OverflowSeenAlone final : public TrainingRules {
 public:
  bool skips_update(bool /*overflow_anywhere*/, bool overflow_here) const override { return overflow_here; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_overflow_seen_alone() { return std::make_unique<OverflowSeenAlone>(); }

}  // namespace firedrill
