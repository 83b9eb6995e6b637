// Which of the engine's checks notices which damage.
#include <cstddef>

#include "faults/budget.h"
#include "faults/mistakes.h"

namespace firedrill {
namespace {

// The checks that notice it, as a user turns them on; empty: one of them is on, or none is needed.
std::string_view missing_cover(const FaultSpec& fault, const Layout& layout) {
  const bool compared = layout.replica_check > 0 && layout.world_size() > 1;
  if (fault.kind == FaultKind::corrupt_payload) {
    return layout.guard == Guard::check || compared ? "" : "guard: check, or replica_check: N for what is not reduced";
  }
  if (fault.kind != FaultKind::bit_flip && fault.kind != FaultKind::nan) return "";
  if (layout.rerun) return "";
  // A wrong activation or gradient is added up, and all replicas get the same wrong sum.
  const bool before_the_sum = fault.target == Target::activation || fault.target == Target::gradient;
  if (before_the_sum) return "rerun: true";
  return compared ? "" : "rerun: true, or replica_check: N where there are replicas";
}

}  // namespace

std::vector<std::string> mistakes_in_cover(const std::vector<FaultSpec>& faults, const Layout& layout) {
  Mistakes mistakes;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const std::string_view missing = missing_cover(faults[i], layout);
    if (missing.empty()) continue;
    mistakes.add(
        "faults[{}] ({}) is damage that nothing in layout {} notices, so no system gets to the golden: turn on {} in "
        "layout, or expect a failure",
        i, describe(faults[i]), to_string(layout), missing);
  }
  return mistakes.take();
}

}  // namespace firedrill
