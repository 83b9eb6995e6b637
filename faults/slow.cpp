// slow: calls of the rank take longer, each by `delay`: virtual time in the sim world, real time in the process world.
// Within its bound (no call longer than cluster.deadline, no single wait of a peer longer than a few of them) it is no
// failure and nobody may be blamed for it.
#include "faults/kinds.h"

namespace firedrill {

Status take_slow(const Firing& firing, Effects& effects) {
  return effects.sleep_until(effects.now() + firing.spec.delay);
}

}  // namespace firedrill
