// A sync that failed is tried again on the same file, and believed when it then reports success. The storage has given
// up what the first one could not write.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class SyncAgain final : public Protocol {
 protected:
  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    FD_TRY(const std::unique_ptr<File> file, ctx.parts.files.create(path));
    FD_TRY_VOID(file->write(0, bytes));
    Status synced = file->sync();
    if (synced.failed_with(Code::io_error)) synced = file->sync();
    if (!synced) return synced;
    return file->close();
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_sync_again() { return std::make_unique<SyncAgain>(); }

}  // namespace firedrill
