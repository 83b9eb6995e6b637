// "Keep the last k": the checkpoint being written counts as one of them, and what is beyond them is deleted when its
// files are there, before it is committed.
//
// With k = 1 it shows under every profile, and to a process that is killed between the two: there is no checkpoint.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

namespace firedrill {
namespace {

class PurgeBeforeCommit final : public Protocol {
 protected:
  Status commit(const CheckpointContext& ctx, const CheckpointId& id, const Value& manifest,
                bool& rename_issued) override {
    FD_TRY_VOID(delete_checkpoints(ctx.parts.files, victims(known(), ctx.job.checkpoint.keep_validated - 1)));
    return Protocol::commit(ctx, id, manifest, rename_issued);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_purge_before_commit() { return std::make_unique<PurgeBeforeCommit>(); }

}  // namespace firedrill
