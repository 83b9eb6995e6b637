// stall: the task that makes the call is stuck for ever, as in an endless loop: no abort reaches it. The other tasks of
// the rank live on, and so do its signs of life.
#include "faults/kinds.h"

namespace firedrill {

Status take_stall(const Firing&, Effects& effects) {
  effects.stall_task();
  return Error{.code = Code::dead, .message = "this rank was stuck by a planned fault", .injected = true};
}

}  // namespace firedrill
