// The checkpoint counts as validated when it is committed: nobody reads back what the storage made of it.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

namespace firedrill {
namespace {

class PublishReadsNothingBack final : public Protocol {
 protected:
  Status trial_restore(const CheckpointContext&, const CheckpointId&, const Value&, const Digest&) override {
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_publish_reads_nothing_back() { return std::make_unique<PublishReadsNothingBack>(); }

}  // namespace firedrill
