// late_message: the message does not arrive in its attempt; it lies at the peer when the next attempt begins, and says
// of which attempt it is.
#include "faults/kinds.h"

namespace firedrill {

Status take_late_message(const Firing& firing, Effects&) {
  firing.call.message->late = true;
  return {};
}

}  // namespace firedrill
