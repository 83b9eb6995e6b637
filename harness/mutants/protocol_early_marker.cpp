// The coordinator syncs its own files and commits; the other ranks sync theirs afterwards, in their own time. While
// they have not, the death of one of their nodes leaves a commit without its shards.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include "engine/ckpt/id.h"

namespace firedrill {
namespace {

class EarlyMarker final : public Protocol {
 protected:
  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    if (ctx.coordinator()) return Protocol::write_shard(ctx, path, bytes);
    return write_unsynced(ctx.parts.files, path, bytes);
  }

  Status trial_restore(const CheckpointContext& ctx, const CheckpointId& id, const Value& reports,
                       const Digest& manifest) override {
    for (int kind = 0; kind < shard_kind_count; ++kind) {
      const std::string name = shard_name(static_cast<ShardKind>(kind), ctx.world.me);
      FD_TRY(const std::unique_ptr<File> file, ctx.parts.files.open(path_in(shard_directory(id), name)));
      FD_TRY_VOID(file->sync());
    }
    return Protocol::trial_restore(ctx, id, reports, manifest);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_early_marker() { return std::make_unique<EarlyMarker>(); }

}  // namespace firedrill
