// What may be wrong with a trial, in words, and what no plan excuses.
#include "harness/explore/swarm/trials.h"

namespace firedrill {

std::string_view to_string(Trouble trouble) {
  switch (trouble) {
    case Trouble::failed: return "failed";
    case Trouble::wrong_result: return "a wrong result beyond the budget";
    case Trouble::not_repeatable: return "the same plan gave another history";
    case Trouble::memo_differs: return "without the memo it gave another history";
    case Trouble::broken: return "broken";
  }
  return "?";
}

std::optional<Judged> wrong_result(const Case& run) {
  for (const std::string_view name : {"resume_equals_golden", "partial_never_discoverable"}) {
    const Property* property = find_property(name);
    Verdict verdict = judge(*property, run);
    if (verdict.outcome == Outcome::fail) return Judged{property, std::move(verdict)};
  }
  return std::nullopt;
}

}  // namespace firedrill
