// The newest checkpoint is the one to resume from, whatever happens: when a second look confirms that it cannot be
// read, the attempt ends, in the hope that the storage recovers, and the next attempt chooses it again.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class NeverGivesUp final : public Protocol {
 protected:
  Result<ManifestView> verify(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                              const CheckpointId& id, const Scope& scope) override {
    Result<ManifestView> whole = Protocol::verify(files, compute, expectation, id, scope);
    if (!scope.drop_caches || !whole.failed_with(Code::corrupted)) return whole;
    Error error = std::move(whole).error();
    error.code = Code::unavailable;
    return error;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_never_gives_up() { return std::make_unique<NeverGivesUp>(); }

}  // namespace firedrill
