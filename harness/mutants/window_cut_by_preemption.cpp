// A rank that is told to leave in the middle of an accumulation window closes it at once. What is left of the window is
// neither added up nor taken up again by the resume, which knows of no count of micro-batches.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class WindowCutByPreemption final : public TrainingRules {
 public:
  bool completes_window(int micro_batch, bool leaving) const override { return micro_batch == 0 || !leaving; }
};

}  // namespace

std::unique_ptr<TrainingRules> make_window_cut_by_preemption() { return std::make_unique<WindowCutByPreemption>(); }

}  // namespace firedrill
