// drop_message: the rank is told that its message left, and it never arrives.
#include "faults/kinds.h"

namespace firedrill {

Status take_drop_message(const Firing& firing, Effects&) {
  firing.call.message->dropped = true;
  return {};
}

}  // namespace firedrill
