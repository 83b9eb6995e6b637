// dropped_write: the storage acknowledges a write and loses it: the file is as it was before.
#include "faults/kinds.h"

namespace firedrill {

Status take_dropped_write(const Firing& firing, Effects&) {
  firing.call.file->skipped = true;
  return {};
}

}  // namespace firedrill
