// The batch of a rank is fixed, not that of the job: a rank runs as many rows as one lane has, and where fewer ranks go
// on, each with several lanes, the rows of the others are left out.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class BatchOfARank final : public TrainingRules {
 public:
  int lane_drawn(const Holdings& holdings, int lane) const override {
    return lane == holdings.place.dp_lanes.begin ? lane : -1;
  }
};

}  // namespace

std::unique_ptr<TrainingRules> make_batch_of_a_rank() { return std::make_unique<BatchOfARank>(); }

}  // namespace firedrill
