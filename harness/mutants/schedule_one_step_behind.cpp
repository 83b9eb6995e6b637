// The learning rate is saved before the scheduler makes its step: a resume repeats the rate of the step that was saved.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

namespace firedrill {
namespace {

class ScheduleOneStepBehind final : public Protocol {
 protected:
  Status restored(const CheckpointContext&, const FindResult&, StateView& state) override {
    change_number(state, "schedule.step", [](std::int64_t step) { return step > 0 ? step - 1 : 0; });
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_schedule_one_step_behind() { return std::make_unique<ScheduleOneStepBehind>(); }

}  // namespace firedrill
