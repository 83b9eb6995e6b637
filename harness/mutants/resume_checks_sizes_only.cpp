// A checkpoint is whole if all its files have the size that its manifest says: no digest is looked at.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

namespace firedrill {
namespace {

class ResumeChecksSizesOnly final : public Protocol {
 protected:
  Result<ManifestView> verify(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                              const CheckpointId& id, const Scope& scope) override {
    // Of so many shares no shard of any rank is this one's.
    return Protocol::verify(files, compute, expectation, id,
                            {.share = nobodys_share, .shares = nobodys_share + 1, .drop_caches = scope.drop_caches});
  }

 private:
  static constexpr int nobodys_share = 1 << 20;
};

}  // namespace

std::unique_ptr<Protocol> make_resume_checks_sizes_only() { return std::make_unique<ResumeChecksSizesOnly>(); }

}  // namespace firedrill
