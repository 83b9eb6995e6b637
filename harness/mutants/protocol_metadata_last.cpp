// The metadata file is written last, in its place, as the sign that all is there; it is synced, the directory that
// holds it is not.
//
// Only posix shows it: the name may be lost after the save was reported. On ext4 a sync of the new file also commits
// its name, on nfs names last when the call returns.
#include "harness/mutants/mutants.h"

#include "engine/ckpt/id.h"

namespace firedrill {
namespace {

class MetadataLast final : public Protocol {
 protected:
  Status commit(const CheckpointContext& ctx, const CheckpointId& id, const Value& manifest,
                bool& rename_issued) override {
    rename_issued = true;
    return write_synced(ctx.parts.files, path_in(directory::manifests, id), manifest);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_metadata_last() { return std::make_unique<MetadataLast>(); }

}  // namespace firedrill
