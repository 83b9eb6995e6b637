// "Write, rename, done": the names are made durable, the bytes behind them are not.
#include "harness/mutants/mutants.h"

#include "engine/ckpt/id.h"

namespace firedrill {
namespace {

class UnsyncedFiles final : public Protocol {
 protected:
  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    return write_unsynced(ctx.parts.files, path, bytes);
  }

  Status commit(const CheckpointContext& ctx, const CheckpointId& id, const Value& manifest,
                bool& rename_issued) override {
    FileSystem& files = ctx.parts.files;
    const std::string temporary = path_in(directory::tmp, id);
    FD_TRY_VOID(write_unsynced(files, temporary, manifest));
    rename_issued = true;
    FD_TRY_VOID(files.rename(temporary, path_in(directory::manifests, id)));
    return files.sync_directory(directory::manifests);
  }

 private:
  static Status write_unsynced(FileSystem& files, const std::string& path, const Value& bytes) {
    FD_TRY(const std::unique_ptr<File> file, files.create(path));
    FD_TRY_VOID(file->write(0, bytes));
    return file->close();
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_unsynced_files() { return std::make_unique<UnsyncedFiles>(); }

}  // namespace firedrill
