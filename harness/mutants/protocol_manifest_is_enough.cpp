// "Valid" means that the manifest is there and can be read: neither sizes nor digests of the shards are looked at.
#include "harness/mutants/mutants.h"

#include "engine/ckpt/files.h"
#include "engine/ckpt/manifest.h"

namespace firedrill {
namespace {

class ManifestIsEnough final : public Protocol {
 protected:
  Result<ManifestView> verify(FileSystem& files, Compute& compute, const ExpectedRun&, const CheckpointId& id,
                              const Scope&) override {
    FD_TRY(const Value text, read_whole(files, path_in(directory::manifests, id), manifest_size_max));
    return parse_manifest(compute, text);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_manifest_is_enough() { return std::make_unique<ManifestIsEnough>(); }

}  // namespace firedrill
