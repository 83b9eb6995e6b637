// skip_call: the rank does not make the call, and goes on with the result that it would get as the only member.
#include "faults/kinds.h"

namespace firedrill {

Status take_skip_call(const Firing& firing, Effects&) {
  firing.call.collective->skipped = true;
  return {};
}

}  // namespace firedrill
