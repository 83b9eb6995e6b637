// clock_skew: the clock of the rank's node is wrong from then on, as the modification times of what it writes show.
// Deadlines are not touched: they go by a clock that only runs forward.
#include "faults/kinds.h"

namespace firedrill {

Status take_clock_skew(const Firing& firing, Effects& effects) {
  effects.skew_clock(firing.spec.ahead - firing.spec.behind);
  return {};
}

}  // namespace firedrill
