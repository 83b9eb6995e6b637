// The metadata is synced under a temporary name and renamed into place (PyTorch's distributed checkpoint); the parent
// directory is not synced, yet the save is reported.
//
// Only posix shows it: the rename may be lost. On ext4 the mark that follows is synced and commits the rename with it;
// on nfs names last when the call returns.
#include "harness/mutants/mutants.h"

#include "engine/ckpt/id.h"

namespace firedrill {
namespace {

class UnsyncedParent final : public Protocol {
 protected:
  Status commit(const CheckpointContext& ctx, const CheckpointId& id, const Value& manifest,
                bool& rename_issued) override {
    FileSystem& files = ctx.parts.files;
    const std::string temporary = path_in(directory::tmp, id);
    FD_TRY_VOID(write_synced(files, temporary, manifest));
    rename_issued = true;
    return files.rename(temporary, path_in(directory::manifests, id));
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_unsynced_parent() { return std::make_unique<UnsyncedParent>(); }

}  // namespace firedrill
