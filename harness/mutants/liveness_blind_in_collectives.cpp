// Nothing checks liveness while a rank waits in a collective: only the end of the wait itself, by its own clock, does.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class LivenessBlindInCollectives final : public LivenessRules {
 public:
  bool looks_at_awaited() const override { return false; }
};

}  // namespace

std::unique_ptr<LivenessRules> make_liveness_blind_in_collectives() {
  return std::make_unique<LivenessBlindInCollectives>();
}

}  // namespace firedrill
