// A resume makes its sampler anew, with the seed of the first epoch, and then puts the cursor where it was: the rest of
// a later epoch is taken from another order.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include "engine/base/rng.h"

namespace firedrill {
namespace {

class SamplerEpochSeedReset final : public Protocol {
 protected:
  Status restored(const CheckpointContext& ctx, const FindResult&, StateView& state) override {
    const auto first = static_cast<std::int64_t>(Stream(ctx.job.seed, stream_id("data.epoch")).at(0));
    change_number(state, "sampler.epoch_seed", [first](std::int64_t) { return first; });
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_sampler_epoch_seed_reset() { return std::make_unique<SamplerEpochSeedReset>(); }

}  // namespace firedrill
