// lose_unsynced_names: the host of the rank loses its power. Data that the node wrote stays, also where the name that
// leads to it had not been synced and is gone.
#include "faults/kinds.h"

namespace firedrill {

Status take_lose_unsynced_names(const Firing&, Effects& effects) {
  effects.kill_node(false, true);
  return Error{
      .code = Code::dead, .message = "this rank's node lost its power and its unsynced names", .injected = true};
}

}  // namespace firedrill
