// Each file goes to a temporary name and is renamed into place ("atomic save"). Neither files nor directories are
// synced.
//
// posix, ext4: a name may last without the bytes behind it (a rename to a new name flushes nothing), or be lost after
// the save was reported. nfs shows nothing: close flushes, and names last when the call returns.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include "engine/ckpt/id.h"

namespace firedrill {
namespace {

class RenameUnsynced final : public Protocol {
 protected:
  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    return write_and_rename(ctx.parts.files, path + ".tmp", path, bytes);
  }

  Status commit(const CheckpointContext& ctx, const CheckpointId& id, const Value& manifest,
                bool& rename_issued) override {
    rename_issued = true;
    return write_and_rename(ctx.parts.files, path_in(directory::tmp, id), path_in(directory::manifests, id), manifest);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_rename_unsynced() { return std::make_unique<RenameUnsynced>(); }

}  // namespace firedrill
