// The position in the data is saved before the batch is consumed: a resume takes the last batch once more.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include <algorithm>

namespace firedrill {
namespace {

class SamplerOneBatchBehind final : public Protocol {
 protected:
  Status restored(const CheckpointContext& ctx, const FindResult&, StateView& state) override {
    const std::int64_t batch = ctx.job.global_batch();
    change_number(state, "sampler.cursor",
                  [batch](std::int64_t cursor) { return std::max<std::int64_t>(cursor - batch, 0); });
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_sampler_one_batch_behind() { return std::make_unique<SamplerOneBatchBehind>(); }

}  // namespace firedrill
