// wrong_root: the rank takes the member behind the root for the root of a broadcast.
#include "faults/kinds.h"

namespace firedrill {

Status take_wrong_root(const Firing& firing, Effects&) {
  firing.call.collective->wrong_root = true;
  return {};
}

}  // namespace firedrill
