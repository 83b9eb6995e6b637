// The newest checkpoint is the last name in the order of text, in which step 10 comes before step 8.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

#include <algorithm>
#include <functional>

namespace firedrill {
namespace {

class ResumeSortsNames final : public Protocol {
 protected:
  std::vector<CheckpointId> candidates(const Survey& survey) const override {
    std::vector<CheckpointId> ids = Protocol::candidates(survey);
    std::ranges::sort(ids, std::greater<>(), [](const CheckpointId& id) { return to_string(id); });
    return ids;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_resume_sorts_names() { return std::make_unique<ResumeSortsNames>(); }

}  // namespace firedrill
