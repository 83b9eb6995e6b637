// The disk has room for one checkpoint, so the old one is deleted first, and then the new one is saved.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

namespace firedrill {
namespace {

class DeleteThenSave final : public Protocol {
 protected:
  Status open_try(const CheckpointContext& ctx, const std::string& directory, std::int64_t bytes) override {
    FD_TRY_VOID(delete_checkpoints(ctx.parts.files, victims(known(), 0)));
    return Protocol::open_try(ctx, directory, bytes);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_delete_then_save() { return std::make_unique<DeleteThenSave>(); }

}  // namespace firedrill
