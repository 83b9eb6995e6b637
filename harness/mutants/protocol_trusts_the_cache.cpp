// A resume trusts what it found, although it may have found it in a cache only, and makes room at once: what is older
// is deleted, durably, before the name of the newest is.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class TrustsTheCache final : public Protocol {
 protected:
  Status settle(const CheckpointContext&, const CheckpointId&, const std::vector<CheckpointId>&) override { return {}; }

  Status restored(const CheckpointContext& ctx, const FindResult&, StateView&) override {
    if (!ctx.coordinator()) return {};
    FileSystem& files = ctx.parts.files;
    for (const CheckpointId& id : victims(known(), ctx.job.checkpoint.keep_validated)) {
      FD_TRY_VOID(write_mark(files, directory::tombstones, id));
      FD_TRY_VOID(remove_tree(files, shard_directory(id)));
    }
    return files.sync_directory(directory::shards);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_trusts_the_cache() { return std::make_unique<TrustsTheCache>(); }

}  // namespace firedrill
