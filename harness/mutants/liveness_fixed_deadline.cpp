// The deadline of a wait counts from its beginning, whatever the rank that is waited for does meanwhile.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class LivenessFixedDeadline final : public LivenessRules {
 public:
  bool progress_extends_waits() const override { return false; }
};

}  // namespace

std::unique_ptr<LivenessRules> make_liveness_fixed_deadline() { return std::make_unique<LivenessFixedDeadline>(); }

}  // namespace firedrill
