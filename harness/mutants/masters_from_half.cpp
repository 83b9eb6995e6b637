// fp32 masters are not loaded but made from the 16-bit weights: what a step was too small to show in 16 bits is lost.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include "engine/base/half.h"

namespace firedrill {
namespace {

class MastersFromHalf final : public Protocol {
 protected:
  Status restored(const CheckpointContext&, const FindResult&, StateView& state) override {
    for (StateGroup& group : state) {
      if (group.shard != ShardKind::model) continue;
      MutableValue numbers{Value(group.value)};
      round_to(DType::f16, numbers.as<float>());
      group.value = std::move(numbers).freeze();
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_masters_from_half() { return std::make_unique<MastersFromHalf>(); }

}  // namespace firedrill
