// preempt: the rank gets SIGTERM, and is killed when cluster.grace is over. It goes on until all ranks have agreed on a
// step to save at.
#include "faults/kinds.h"

namespace firedrill {

Status take_preempt(const Firing&, Effects& effects) {
  effects.preempt_rank();
  return {};
}

}  // namespace firedrill
