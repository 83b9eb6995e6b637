// nan: one number of what a kernel computed is not a number, on one rank.
#include "faults/bit_flip.h"
#include "faults/damage.h"
#include "faults/kinds.h"

namespace firedrill {

Status take_nan(const Firing& firing, Effects&) {
  Value& computed = *firing.call.value;
  computed = with_damage(computed, spot_of(firing.spec.target), PayloadDamage::nan);
  return {};
}

}  // namespace firedrill
