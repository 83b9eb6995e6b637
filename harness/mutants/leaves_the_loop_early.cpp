// The input of the last dp rank ends a step early, and it leaves the loop by itself, while its peers wait for its
// gradients.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class LeavesTheLoopEarly final : public TrainingRules {
 public:
  bool input_left(const Holdings& holdings, std::int64_t step, std::int64_t steps) const override {
    return step < steps || holdings.place.dp_lanes.end < holdings.dp_lanes;
  }
};

}  // namespace

std::unique_ptr<TrainingRules> make_leaves_the_loop_early() { return std::make_unique<LeavesTheLoopEarly>(); }

}  // namespace firedrill
