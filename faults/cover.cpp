// Which of the engine's checks notices which damage.
#include <cstddef>

#include "faults/budget.h"
#include "faults/mistakes.h"

namespace firedrill {
namespace {

bool damages_computation(const FaultSpec& fault) {
  return fault.kind == FaultKind::bit_flip || fault.kind == FaultKind::nan;
}

// What would make something notice it, in words; empty: something does, or nothing has to.
std::string_view missing_cover(const FaultSpec& fault, const Layout& layout) {
  if (fault.kind == FaultKind::corrupt_payload) {
    if (layout.guard == Guard::check || (layout.replica_check > 0 && layout.world_size() > 1)) return "";
    return "turn on guard: check, or replica_check: N for what is not reduced, in layout";
  }
  if (!damages_computation(fault)) return "";
  if (layout.rerun && fault.times == 1) return "";
  const bool replicated = damages_one_replica(fault, layout);
  if (layout.replica_check > 0 && replicated) return "";
  if (layout.rerun) return "give times: 1 (a rerun on the same rank may be damaged alike)";
  return replicated ? "turn on rerun: true, or replica_check: N, in layout" : "turn on rerun: true in layout";
}

// Two that can hit a computation and its rerun alike, so that these agree.
bool can_damage_alike(const FaultSpec& a, const FaultSpec& b) {
  const auto can_meet = [](const auto& one, const auto& other) { return !one || !other || *one == *other; };
  return a.kind == b.kind && a.target == b.target && a.at.rank == b.at.rank && can_meet(a.at.attempt, b.at.attempt) &&
         can_meet(a.at.step, b.at.step) && can_meet(a.at.phase, b.at.phase);
}

// Whether a rerun is all that notices it.
bool is_left_to_reruns(const FaultSpec& fault, const Layout& layout) {
  return damages_computation(fault) && layout.rerun &&
         !(layout.replica_check > 0 && damages_one_replica(fault, layout));
}

}  // namespace

bool damages_one_replica(const FaultSpec& fault, const Layout& layout) {
  if (!damages_computation(fault)) return false;
  // A wrong activation or gradient is added up, and all replicas get the same wrong sum. Where optimizer states are
  // sharded, one rank updates for all.
  if (fault.target == Target::activation || fault.target == Target::gradient) return false;
  return layout.zero == 0 && layout.dp * layout.cp > 1;
}

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
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (!is_left_to_reruns(faults[i], layout)) continue;
    for (std::size_t k = 0; k < i; ++k) {
      if (!can_damage_alike(faults[k], faults[i])) continue;
      mistakes.add(
          "faults[{}] ({}) and faults[{}] can damage a computation and its rerun alike, which nothing in layout {} "
          "notices: give one of them another rank, step or phase, or expect a failure",
          i, describe(faults[i]), k, to_string(layout));
      break;
    }
  }
  return mistakes.take();
}

}  // namespace firedrill
