// wrong_count: the rank reduces one element less than its peers.
#include "faults/kinds.h"

namespace firedrill {

Status take_wrong_count(const Firing& firing, Effects&) {
  firing.call.collective->wrong_count = true;
  return {};
}

}  // namespace firedrill
