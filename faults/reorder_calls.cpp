// reorder_calls: a call that the rank need not wait for (a send, a barrier, the start of a reduction) is held back
// until the rank's next call is made, and then made. A rank that waits for it in between makes it there, and nothing
// fired.
#include "faults/kinds.h"

namespace firedrill {

Status take_reorder_calls(const Firing& firing, Effects&) {
  firing.call.collective->held = true;
  return {};
}

}  // namespace firedrill
