// slow_shard: rows of the training text come late, by `delay`: virtual time in the sim world, real time in the process
// world.
#include "faults/kinds.h"

namespace firedrill {

Status take_slow_shard(const Firing& firing, Effects& effects) {
  return effects.sleep_until(effects.now() + firing.spec.delay);
}

}  // namespace firedrill
