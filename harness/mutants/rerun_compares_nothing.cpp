// Everything is computed twice, and the second result is kept without a look at the first.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class RerunComparesNothing final : public TrainingRules {
 public:
  bool compares_reruns() const override { return false; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_rerun_compares_nothing() { return std::make_unique<RerunComparesNothing>(); }

}  // namespace firedrill
