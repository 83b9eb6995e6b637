// Every rank keeps order by itself: as soon as it has read back the new checkpoint it deletes what its own listing
// shows beyond the newest ones, while other ranks still read and nobody knows yet whether the new one is whole.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

namespace firedrill {
namespace {

class EverybodyPrunes final : public Protocol {
 protected:
  Status trial_restore(const CheckpointContext& ctx, const CheckpointId& id, const Value& reports,
                       const Digest& manifest) override {
    FD_TRY_VOID(Protocol::trial_restore(ctx, id, reports, manifest));
    FD_TRY(const Survey listed, survey(ctx.parts.files));
    std::vector<CheckpointId> old = candidates(listed);
    const auto kept = std::min(old.size(), static_cast<std::size_t>(ctx.job.checkpoint.keep_validated));
    old.erase(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(kept));
    return delete_checkpoints(ctx.parts.files, old);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_everybody_prunes() { return std::make_unique<EverybodyPrunes>(); }

}  // namespace firedrill
