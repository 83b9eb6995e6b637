// hang: the rank stops, as by SIGSTOP: it is there, none of its tasks goes on, and nothing is heard of it. Only its
// peers' watchdog can end that; the call itself never comes back.
#include "faults/kinds.h"

namespace firedrill {

Status take_hang(const Firing&, Effects& effects) {
  effects.hang_rank();
  return Error{.code = Code::dead, .message = "this rank was stopped by a planned fault", .injected = true};
}

}  // namespace firedrill
