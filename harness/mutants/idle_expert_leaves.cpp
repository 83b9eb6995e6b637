// An expert that got no tokens on a rank has no gradient there, so the rank leaves it out of the reduction.
#include <algorithm>

#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class IdleExpertLeaves final : public TrainingRules {
 public:
  bool joins_reduction(std::span<const Value> expert) const override {
    return std::ranges::any_of(expert, [](const Value& gradient) {
      return std::ranges::any_of(gradient.as<float>(), [](float g) { return g != 0.0F; });
    });
  }
};

}  // namespace

std::unique_ptr<TrainingRules> make_idle_expert_leaves() { return std::make_unique<IdleExpertLeaves>(); }

}  // namespace firedrill
