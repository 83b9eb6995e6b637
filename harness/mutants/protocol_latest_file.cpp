// A text file `latest` names the newest checkpoint (DeepSpeed): all ranks write their files, then one brings `latest`
// up to date. A resume goes where it points. Nothing is synced; that `latest` itself is replaced at once, by a rename,
// is more than most do (protocol_tracker_file writes over it).
//
// posix, ext4: `latest` may last while the shards it points at are empty, or be lost after the save was reported. nfs
// shows nothing: close flushes, and names last when the call returns.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include "engine/ckpt/id.h"

namespace firedrill {
namespace {

constexpr std::string_view latest = "latest";

class LatestFile final : public Protocol {
 protected:
  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    return write_unsynced(ctx.parts.files, path, bytes);
  }

  Status commit(const CheckpointContext& ctx, const CheckpointId& id, const Value& manifest,
                bool& rename_issued) override {
    FileSystem& files = ctx.parts.files;
    const std::string temporary = path_in(directory::tmp, id);
    rename_issued = true;
    FD_TRY_VOID(write_and_rename(files, temporary, path_in(directory::manifests, id), manifest));
    return write_and_rename(files, temporary, latest, Value::copy_of(to_string(id)));
  }

  Result<Survey> survey(FileSystem& files) override {
    FD_TRY(Survey survey, Protocol::survey(files));
    FD_TRY(const std::string name, text_of(files, latest));
    look_no_further_than(checkpoint_id_from(name), survey);
    return survey;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_latest_file() { return std::make_unique<LatestFile>(); }

}  // namespace firedrill
