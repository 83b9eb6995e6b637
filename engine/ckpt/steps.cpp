// The steps of a publish on one rank's disk, and the file helpers that overriding steps may use too.
#include <fmt/format.h>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/files.h"
#include "engine/ckpt/protocol.h"
#include "engine/ckpt/shard.h"

namespace firedrill {

Result<Value> read_whole(FileSystem& files, std::string_view path, std::int64_t size_max) {
  FD_TRY(const auto file, files.open(path));
  FD_TRY(const std::int64_t size, file->size());
  if (size > size_max) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("{} has {} bytes, more than the {} it may have", path, size, size_max)};
  }
  FD_TRY(Value bytes, file->read(0, size));
  if (static_cast<std::int64_t>(bytes.size()) != size) {
    return Error{.code = Code::corrupted, .message = fmt::format("{}: {} of {} bytes read", path, bytes.size(), size)};
  }
  return bytes;
}

Status Protocol::write_synced(FileSystem& files, std::string_view path, const Value& bytes) {
  FD_TRY(const auto file, files.create(path));
  if (bytes.size() > 0) FD_TRY_VOID(file->write(0, bytes));
  FD_TRY_VOID(file->sync());
  return file->close();
}

Status Protocol::write_mark(FileSystem& files, std::string_view directory, const CheckpointId& id) {
  const std::string path = path_in(directory, id);
  auto created = files.create(path);
  if (!created && !created.failed_with(Code::already_exists)) return created.error();
  if (created) {
    FD_TRY_VOID((*created)->sync());
    FD_TRY_VOID((*created)->close());
  }
  return files.sync_directory(directory);
}

Status Protocol::remove_tree(FileSystem& files, const std::string& directory) {
  auto names = files.list(directory);
  if (names.failed_with(Code::not_found)) return {};
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (auto removed = files.remove(path_in(directory, name)); !removed && !removed.failed_with(Code::not_found)) {
      return removed;
    }
  }
  if (auto removed = files.remove(directory); !removed && !removed.failed_with(Code::not_found)) return removed;
  return {};
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
  FileSystem& files = ctx.parts.files;
  const std::string temporary = path_in(directory::tmp, id);
  FD_TRY_VOID(write_synced(files, temporary, manifest));
  rename_issued = true;
  FD_TRY_VOID(files.rename(temporary, path_in(directory::manifests, id)));
  return files.sync_directory(directory::manifests);
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
    const std::string path = path_in(directory::manifests, id);
    FD_TRY_VOID(files.drop_cache(path));
    FD_TRY(const Value text, read_whole(files, path, manifest_size_max));
    if (text.digest() != manifest) {
      return Error{
          .code = Code::corrupted,
          .message = fmt::format("{} reads back with digest {}, not {}", path, text.digest().hex(), manifest.hex())};
    }
  }
  return {};
}

Status Protocol::mark_validated(const CheckpointContext& ctx, const CheckpointId& id) {
  return write_mark(ctx.parts.files, directory::validated, id);
}

}  // namespace firedrill
