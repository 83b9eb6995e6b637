// duplicate_message: the message arrives twice, one right behind the other.
#include "faults/kinds.h"

namespace firedrill {

Status take_duplicate_message(const Firing& firing, Effects&) {
  firing.call.message->doubled = true;
  return {};
}

}  // namespace firedrill
