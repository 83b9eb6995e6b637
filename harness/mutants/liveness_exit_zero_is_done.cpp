// A process that ends with exit code 0 counts as one that has done its work.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class LivenessExitZeroIsDone final : public LivenessRules {
 public:
  bool completed(bool said_so, int exit_code) const override { return said_so || exit_code == 0; }
};

}  // namespace

std::unique_ptr<LivenessRules> make_liveness_exit_zero_is_done() { return std::make_unique<LivenessExitZeroIsDone>(); }

}  // namespace firedrill
