// delay_message: the message leaves later, by `delay`. Its sender waits so long.
#include "faults/kinds.h"

namespace firedrill {

Status take_delay_message(const Firing& firing, Effects& effects) {
  return effects.sleep_until(effects.now() + firing.spec.delay);
}

}  // namespace firedrill
