// A text file `latest` names the newest checkpoint (DeepSpeed): all ranks write their files, then one writes `latest`.
// Nothing is synced. A resume goes where `latest` points.
//
// posix, ext4: `latest` may last while the shards it points at are empty. nfs: close flushes and names last at once, so
// only the moment in which `latest` is rewritten shows; it shows everywhere, also to a process that is killed there.
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
    rename_issued = true;
    FD_TRY_VOID(write_unsynced(ctx.parts.files, path_in(directory::manifests, id), manifest));
    return write_over(ctx.parts.files, latest, Value::copy_of(to_string(id)));
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
