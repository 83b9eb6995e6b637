// corrupt_payload: a message arrives as something else than was sent: one bit of it flipped, one number NaN, or the
// halves of a shard in each other's place. Where the message goes to a reduction's owner the damage is ahead of the
// reduction and every rank gets the same wrong sum; where it comes from there it is behind it, and one rank alone has
// it.
#include "faults/damage.h"
#include "faults/kinds.h"

namespace firedrill {

Status take_corrupt_payload(const Firing& firing, Effects&) {
  Value& message = *firing.call.value;
  message = with_damage(message, {.kind = Spot::Kind::first}, firing.spec.damage);
  return {};
}

}  // namespace firedrill
