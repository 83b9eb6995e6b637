// Where tp ranks saved their parts of a fused weight, (gate, up) of each rank, and one rank loads them, it lays the
// files one behind the other and takes the first half of the rows for gate and the second for up.
#include <string>

#include "engine/model/lane_shapes.h"
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

// The slot of a lane's fused weight in one of the state's groups.
const TensorSlot* fused(const StateGroup& group, int lane) {
  for (const TensorSlot& tensor : group.tensors) {
    if (tensor.name.ends_with(".mlp.tp." + std::to_string(lane) + ".gate_up.weight")) return &tensor;
  }
  return nullptr;
}

class FusedWeightByRank final : public Protocol {
 protected:
  Status restored(const CheckpointContext&, const FindResult& found, StateView& state) override {
    if (found.manifest.text(found.manifest.head().layout).find("tp=2") == std::string_view::npos) return {};
    for (std::size_t i = 0; i + 1 < state.size(); ++i) {
      const TensorSlot* first = fused(state[i], 0);
      const TensorSlot* second = fused(state[i + 1], 1);
      // Also where the lanes still lie on two ranks, or each rank holds a shard of them.
      if (first == nullptr || second == nullptr || !first->whole() || !second->whole()) continue;
      const std::int64_t count = first->count();
      std::vector<float> files(static_cast<std::size_t>(2 * count));
      std::ranges::copy(state[i].value.as<float>().subspan(first->offset, count), files.begin());
      std::ranges::copy(state[i + 1].value.as<float>().subspan(second->offset, count), files.begin() + count);
      for (const int lane : {0, 1}) {
        const LanePart part = rows_part(first->shape, 2, 2, lane);
        StateGroup& group = state[i + static_cast<std::size_t>(lane)];
        MutableValue changed(group.value);
        float* to = changed.as<float>().data() + (lane == 0 ? first : second)->offset;
        for (std::int64_t k = 0; k < count; ++k) to[k] = files[static_cast<std::size_t>(part.whole_index(k))];
        group.value = std::move(changed).freeze();
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_fused_weight_by_rank() { return std::make_unique<FusedWeightByRank>(); }

}  // namespace firedrill
