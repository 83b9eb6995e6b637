// Retention goes through the names in the order of text, in which step 10 comes before step 8: the newest checkpoint is
// deleted as an old one.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include <algorithm>

namespace firedrill {
namespace {

class RetentionSortsNames final : public Protocol {
 protected:
  std::vector<CheckpointId> victims(const std::vector<Known>& known, int keep_validated) const override {
    std::vector<Known> by_name = known;
    std::ranges::sort(by_name, {}, [](const Known& one) { return to_string(one.id); });
    return Protocol::victims(by_name, keep_validated);
  }
};

}  // namespace

std::unique_ptr<Protocol> make_retention_sorts_names() { return std::make_unique<RetentionSortsNames>(); }

}  // namespace firedrill
