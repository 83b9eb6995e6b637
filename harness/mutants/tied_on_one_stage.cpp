// Both ends of the pipeline hold the token weights of a tied model, and only the first one updates them.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class TiedOnOneStage final : public TrainingRules {
 public:
  bool updates_tied_weights(const Holdings& holdings) const override { return holdings.first_stage; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_tied_on_one_stage() { return std::make_unique<TiedOnOneStage>(); }

}  // namespace firedrill
