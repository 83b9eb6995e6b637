// The heartbeat comes from a side task and says no more than that it came, while the trainer may be stuck.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class LivenessOfASideTask final : public LivenessRules {
 public:
  std::uint64_t progress_of(const Heartbeat& heartbeat) const override { return heartbeat.beats; }
};

}  // namespace

std::unique_ptr<LivenessRules> make_liveness_of_a_side_task() { return std::make_unique<LivenessOfASideTask>(); }

}  // namespace firedrill
