// The steps of a publish on one rank's disk, and the file helpers that overriding steps may use too.
#include <fmt/format.h>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/files.h"
#include "engine/ckpt/protocol.h"
#include "engine/ckpt/shard.h"

namespace firedrill {

Status Protocol::write_synced(FileSystem& files, std::string_view path, const Value& bytes) {
  return firedrill::write_synced(files, path, bytes);
}

Status Protocol::write_mark(FileSystem& files, std::string_view directory, const CheckpointId& id) {
  return firedrill::write_mark(files, directory, id);
}

Status Protocol::remove_tree(FileSystem& files, const std::string& directory) {
  return firedrill::remove_tree(files, directory);
}

std::string Protocol::shard_directory(const CheckpointId& id) const { return path_in(directory::shards, id); }

Status Protocol::open_try(const CheckpointContext& ctx, const std::string& directory, std::int64_t bytes) {
  FileSystem& files = ctx.parts.files;
  FD_TRY(const std::int64_t room, files.free_space());
  if (room < bytes) {
    return Error{.code = Code::no_space,
                 .message = fmt::format("{} needs {} bytes, the disk has room for {}", directory, bytes, room),
                 .hint = "make room, or keep fewer checkpoints"};
  }
  FD_TRY_VOID(files.make_directory(directory));
  return files.sync_directory(parent_path(directory));
}

Status Protocol::write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) {
  return write_synced(ctx.parts.files, path, bytes);
}

Status Protocol::commit(const CheckpointContext& ctx, const CheckpointId& id, const Value& manifest,
                        bool& rename_issued) {
  return catalog_for(ctx.job, ctx.parts.compute).commit(ctx.parts.files, id, manifest, rename_issued);
}

Status Protocol::trial_restore(const CheckpointContext& ctx, const CheckpointId& id, const Value& reports,
                               const Digest& manifest) {
  FileSystem& files = ctx.parts.files;
  const int world = ctx.world.size();
  const std::string directory = shard_directory(id);
  for (int owner = 0; owner < world; ++owner) {
    if (reader_of(ctx.job, world, owner) != ctx.world.me) continue;
    const Value& report = reports[static_cast<std::size_t>(owner)];
    FD_TRY(const ReportHead head, report_head(report));
    std::array<Value, shard_kind_count> shards;
    for (std::size_t kind = 0; kind < shard_kind_count; ++kind) {
      const std::string path = path_in(directory, shard_name(static_cast<ShardKind>(kind), owner));
      FD_TRY_VOID(files.drop_cache(path));
      FD_TRY(shards[kind], read_whole(files, path, head.sizes[kind]));
    }
    FD_TRY_VOID(check_shards(ctx.parts.compute, report, shards));
    if (owner != 0) continue;
    FD_TRY(const Value text, catalog_for(ctx.job, ctx.parts.compute).manifest(files, ctx.parts.compute, id, true));
    if (text.digest() != manifest) {
      return Error{.code = Code::corrupted,
                   .message = fmt::format("the manifest of {} reads back with digest {}, not {}", to_string(id),
                                          text.digest().hex(), manifest.hex())};
    }
  }
  return {};
}

Status Protocol::mark_validated(const CheckpointContext& ctx, const CheckpointId& id) {
  return catalog_for(ctx.job, ctx.parts.compute).mark_validated(ctx.parts.files, id);
}

}  // namespace firedrill
