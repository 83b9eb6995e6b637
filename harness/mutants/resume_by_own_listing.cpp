// Every rank takes the newest checkpoint that its own listing shows, and asks no other: one that sees an old listing
// takes an older one.
#include "harness/mutants/mutants.h"

#include <algorithm>

namespace firedrill {
namespace {

class ResumeByOwnListing final : public Protocol {
 protected:
  Result<Survey> take_together(const std::vector<Survey>& surveys, int me) const override {
    Survey own = surveys[static_cast<std::size_t>(me)];
    // Marks of what it does not list say nothing to it.
    std::erase_if(own.validated, [&own](const CheckpointId& id) {
      return std::ranges::find(own.manifests, id) == own.manifests.end();
    });
    return own;
  }
  // Nor does it know what was acknowledged.
  Status allow_start(const CheckpointContext&, const Survey&, const FindResult&) const override { return {}; }
};

}  // namespace

std::unique_ptr<Protocol> make_resume_by_own_listing() { return std::make_unique<ResumeByOwnListing>(); }

}  // namespace firedrill
