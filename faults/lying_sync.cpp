// lying_sync: a sync reports success and does nothing, as a disk does whose cache forgets at a power loss. Only a power
// loss shows it, and no system survives both, so the budget refuses the two together.
#include "faults/kinds.h"

namespace firedrill {

Status take_lying_sync(const Firing& firing, Effects&) {
  firing.call.file->skipped = true;
  return {};
}

}  // namespace firedrill
