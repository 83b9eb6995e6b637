// wrong_reduce_op: the rank asks for another reduction than its peers.
#include "faults/kinds.h"

namespace firedrill {

Status take_wrong_reduce_op(const Firing& firing, Effects&) {
  firing.call.collective->wrong_reduce_op = true;
  return {};
}

}  // namespace firedrill
