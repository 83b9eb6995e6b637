// Deletes the old checkpoints, and takes the dispatched one for the latest, as soon as a save is dispatched: if it
// never commits, too few are left.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class Eager final : public Protocol {
 public:
  Status retire_behind(const CheckpointContext& ctx, const CheckpointId& dispatched) {
    if (!ctx.coordinator()) return {};
    std::vector<Known> with_it = known();
    with_it.push_back({.id = dispatched, .standing = Known::Standing::validated});
    const PhaseScope phase(ctx.parts.position, Phase::retire);
    return retire(ctx, victims(with_it, ctx.job.checkpoint.keep_validated));
  }
};

class Publisher final : public AsyncPublisher {
 public:
  Status dispatch(std::int64_t step, const StateView& state, const Digest& state_digest) override {
    const CheckpointId dispatched{.step = step, .attempt = context().attempt, .trial = 1};
    FD_TRY_VOID(static_cast<Eager&>(protocol()).retire_behind(context(), dispatched));
    return AsyncPublisher::dispatch(step, state, state_digest);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_async_retired_at_dispatch() { return std::make_unique<Eager>(); }
std::unique_ptr<AsyncPublisher> make_async_retired_at_dispatch_publisher() { return std::make_unique<Publisher>(); }

}  // namespace firedrill
