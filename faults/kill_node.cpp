// kill_node: the host of the rank dies, as by power loss, and all ranks on it. Its caches go with it: what was not
// synced may be lost, as the persistence model says.
#include "faults/kinds.h"

namespace firedrill {

Status take_kill_node(const Firing& firing, Effects& effects) {
  effects.kill_node(firing.spec.lose_unsynced_data, firing.spec.lose_unsynced_names);
  return Error{.code = Code::dead, .message = "this rank's node was killed by a planned fault", .injected = true};
}

}  // namespace firedrill
