// lose_unsynced_data: the host of the rank loses its power. Names that the node made stay, also where the data behind
// them had not been synced and is gone.
#include "faults/kinds.h"

namespace firedrill {

Status take_lose_unsynced_data(const Firing&, Effects& effects) {
  effects.kill_node(true, false);
  return Error{
      .code = Code::dead, .message = "this rank's node lost its power and its unsynced data", .injected = true};
}

}  // namespace firedrill
