// One directory for all checkpoints: each save writes over the shards of the last good one.
#include "harness/mutants/mutants.h"

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
    Status removed = ctx.parts.files.remove(path);
    if (!removed && !removed.failed_with(Code::not_found)) return removed;
    return write_synced(ctx.parts.files, path, bytes);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_overwrite_in_place() { return std::make_unique<OverwriteInPlace>(); }

}  // namespace firedrill
