// duplicate_call: the rank makes the call once more behind it. Its peers make it once.
#include "faults/kinds.h"

namespace firedrill {

Status take_duplicate_call(const Firing& firing, Effects&) {
  firing.call.collective->doubled = true;
  return {};
}

}  // namespace firedrill
