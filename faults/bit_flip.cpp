// bit_flip: one bit of what a kernel computed is wrong, on one rank: of an activation, of the gradients of parameters,
// of updated parameters, or of an updated moment.
#include "faults/bit_flip.h"

#include "faults/damage.h"
#include "faults/kinds.h"

namespace firedrill {

Spot spot_of(Target target) {
  switch (target) {
    case Target::activation: return {.kind = Spot::Kind::first};
    case Target::gradient: return {.kind = Spot::Kind::last};  // behind the gradient of the input
    case Target::parameter: return {.kind = Spot::Kind::part, .part = 0};
    case Target::moment: return {.kind = Spot::Kind::part, .part = 1};
  }
  return {};
}

Status take_bit_flip(const Firing& firing, Effects&) {
  Value& computed = *firing.call.value;
  computed = with_damage(computed, spot_of(firing.spec.target), PayloadDamage::bit);
  return {};
}

}  // namespace firedrill
