// Which of the engine's checks notices which damage.
#include <cstddef>

#include "faults/budget.h"
#include "faults/mistakes.h"

namespace firedrill {
namespace {

// What would make something notice it, in words; empty: something does, or nothing has to.
std::string_view missing_cover(const FaultSpec& fault, const Layout& layout) {
  const bool compared = layout.replica_check > 0 && layout.world_size() > 1;
  if (fault.kind == FaultKind::corrupt_payload) {
    if (layout.guard == Guard::check || compared) return "";
    return "turn on guard: check, or replica_check: N for what is not reduced, in layout";
  }
  if (fault.kind != FaultKind::bit_flip && fault.kind != FaultKind::nan) return "";
  if (layout.rerun && fault.times == 1) return "";
  // A wrong activation or gradient is added up, and all replicas get the same wrong sum.
  const bool before_the_sum = fault.target == Target::activation || fault.target == Target::gradient;
  if (compared && !before_the_sum) return "";
  if (layout.rerun) return "give times: 1 (a rerun on the same rank may be damaged alike)";
  return before_the_sum ? "turn on rerun: true in layout"
                        : "turn on rerun: true, or replica_check: N where there are replicas, in layout";
}

}  // namespace

std::vector<std::string> mistakes_in_cover(const std::vector<FaultSpec>& faults, const Layout& layout) {
  Mistakes mistakes;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const std::string_view missing = missing_cover(faults[i], layout);
    if (missing.empty()) continue;
    mistakes.add(
        "faults[{}] ({}) is damage that nothing in layout {} notices, so no system gets to the golden: {}, or "
        "expect a failure",
        i, describe(faults[i]), to_string(layout), missing);
  }
  return mistakes.take();
}

}  // namespace firedrill
