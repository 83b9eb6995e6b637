// kill: the rank dies at once, as by SIGKILL. Nothing of the call comes back to it.
#include "faults/kinds.h"

namespace firedrill {

Status take_kill(const Firing&, Effects& effects) {
  effects.kill_rank();
  return Error{.code = Code::dead, .message = "this rank was killed by a planned fault", .injected = true};
}

}  // namespace firedrill
