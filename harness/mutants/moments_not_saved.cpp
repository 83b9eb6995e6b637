// Only the weights are loaded: the optimizer begins with moments of zero, as after `--finetune` or a missing file.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include <algorithm>

namespace firedrill {
namespace {

class MomentsNotSaved final : public Protocol {
 protected:
  Status restored(const CheckpointContext&, const FindResult&, StateView& state) override {
    for (StateGroup& group : state) {
      if (group.shard != ShardKind::optimizer) continue;
      MutableValue numbers{Value(group.value)};
      std::ranges::fill(numbers.as<float>(), 0.0F);
      group.value = std::move(numbers).freeze();
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_moments_not_saved() { return std::make_unique<MomentsNotSaved>(); }

}  // namespace firedrill
