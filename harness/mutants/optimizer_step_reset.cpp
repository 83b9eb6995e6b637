// A resume that loads the moments and forgets how many updates they have seen: bias correction starts anew.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class OptimizerStepReset final : public Protocol {
 protected:
  Status restored(const CheckpointContext&, const FindResult&, StateView& state) override {
    for (StateGroup& group : state) {
      for (const TensorSlot& tensor : group.tensors) {
        if (tensor.name != "optimizer.step") continue;
        MutableValue numbers{Value(group.value)};
        numbers.as<std::int64_t>()[static_cast<std::size_t>(tensor.offset)] = 0;
        group.value = std::move(numbers).freeze();
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_optimizer_step_reset() { return std::make_unique<OptimizerStepReset>(); }

}  // namespace firedrill
