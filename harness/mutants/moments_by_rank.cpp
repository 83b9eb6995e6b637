// Rank r loads the shard of moments that rank r saved, whatever part of the whole it needs under another number of
// ranks; what its file does not fill stays zero. Meant for layouts of dp ranks only.
#include <algorithm>

#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class MomentsByRank final : public Protocol {
 protected:
  Status restored(const CheckpointContext& ctx, const FindResult& found, StateView& state) override {
    const int saved = static_cast<int>(found.manifest.head().world);
    if (saved == ctx.world.size()) return {};
    for (StateGroup& group : state) {
      if (group.shard != ShardKind::optimizer) continue;
      FD_TRY(const Value all, ctx.parts.collectives.all_gather(ctx.world, group.value, ctx.call("moments")));
      std::vector<float> whole;
      for (const Value& part : all.parts()) {
        const auto more = part.as<float>();
        whole.insert(whole.end(), more.begin(), more.end());
      }
      MutableValue own(DType::f32, group.value.shape());
      std::ranges::fill(own.as<float>(), 0.0F);
      if (ctx.world.me < saved) {
        const Range file = shard_range(static_cast<std::int64_t>(whole.size()), saved, ctx.world.me);
        std::copy_n(whole.begin() + file.begin, std::min<std::int64_t>(file.count(), group.count),
                    own.as<float>().begin());
      }
      group.value = std::move(own).freeze();
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_moments_by_rank() { return std::make_unique<MomentsByRank>(); }

}  // namespace firedrill
