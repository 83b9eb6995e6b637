// The newest checkpoint is the one to resume from, whatever happens: one that cannot be read ends the attempt, and the
// next attempt chooses it again.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class NeverGivesUp final : public Protocol {
 protected:
  Result<ManifestView> verify(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                              const CheckpointId& id, const Scope& scope) override {
    Result<ManifestView> whole = Protocol::verify(files, compute, expectation, id, scope);
    if (!whole.failed_with(Code::corrupted)) return whole;
    Error error = std::move(whole).error();
    error.code = Code::unavailable;  // to be tried again, then
    return error;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_protocol_never_gives_up() { return std::make_unique<NeverGivesUp>(); }

}  // namespace firedrill
