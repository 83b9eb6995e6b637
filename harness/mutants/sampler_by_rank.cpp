// Samples are dealt in turn to the ranks that there are, so the lane that draws a sample changes with their number.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class SamplerByRank final : public TrainingRules {
 public:
  int lane_drawn(const Holdings& holdings, int lane) const override {
    const LaneRange owned = holdings.place.dp_lanes;
    const int ranks = holdings.dp_lanes / owned.count();
    return holdings.place.dp + (lane - owned.begin) * ranks;
  }
};

}  // namespace

std::unique_ptr<TrainingRules> make_sampler_by_rank() { return std::make_unique<SamplerByRank>(); }

}  // namespace firedrill
