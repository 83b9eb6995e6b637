// A resume that starts the loss scaler anew: its scale is the first one again, however far it had come down.
#include <bit>

#include "engine/train/scaler.h"
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class ScalerNotSaved final : public Protocol {
 protected:
  Status restored(const CheckpointContext& context, const FindResult&, StateView& state) override {
    const ScalerState fresh = initial_scaler(context.job.precision.scaler);
    for (StateGroup& group : state) {
      for (const TensorSlot& tensor : group.tensors) {
        if (!tensor.name.starts_with("scaler.")) continue;
        MutableValue numbers{Value(group.value)};
        numbers.as<std::int64_t>()[static_cast<std::size_t>(tensor.offset)] =
            tensor.name == "scaler.scale" ? std::bit_cast<std::int32_t>(fresh.scale) : fresh.growth_tracker;
        group.value = std::move(numbers).freeze();
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_scaler_not_saved() { return std::make_unique<ScalerNotSaved>(); }

}  // namespace firedrill
