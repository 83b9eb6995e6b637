// exit: the rank's process ends by itself in the middle of its work, with an exit code and without a last word. Also
// with code 0, which must not count as having finished.
#include "faults/kinds.h"

namespace firedrill {

Status take_exit(const Firing& firing, Effects& effects) {
  effects.exit_rank(firing.spec.code);
  return Error{.code = Code::dead, .message = "this rank left by a planned fault", .injected = true};
}

}  // namespace firedrill
