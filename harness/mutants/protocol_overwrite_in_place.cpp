// One directory for all checkpoints, "the last one": each save writes over the files of the last good one.
//
// Shows under every profile, and to a process that is killed in the middle: the old checkpoint is gone before the new
// one is there.
#include "harness/mutants/mutants.h"

#include "engine/ckpt/files.h"
#include "engine/ckpt/id.h"

namespace firedrill {
namespace {

class OverwriteInPlace final : public Protocol {
 protected:
  std::string shard_directory(const CheckpointId&) const override { return "shards/current"; }

  Status open_try(const CheckpointContext& ctx, const std::string& directory, std::int64_t) override {
    Status made = ctx.parts.files.make_directory(directory);
    if (!made && !made.failed_with(Code::already_exists)) return made;
    return ctx.parts.files.sync_directory("shards");
  }

  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    FD_TRY_VOID(removed_or_absent(ctx.parts.files.remove(path)));
    return write_synced(ctx.parts.files, path, bytes);
  }

  // The metadata of those before goes; the files are those of the new one.
  Status retire(const CheckpointContext& ctx, const std::vector<CheckpointId>& ids) override {
    for (const CheckpointId& id : ids) {
      for (const std::string_view directory : {directory::manifests, directory::validated}) {
        FD_TRY_VOID(removed_or_absent(ctx.parts.files.remove(path_in(directory, id))));
      }
    }
    return ctx.parts.files.sync_directory(directory::manifests);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_overwrite_in_place() { return std::make_unique<OverwriteInPlace>(); }

}  // namespace firedrill
