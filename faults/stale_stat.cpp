// stale_stat: one rank is told a size from its cache, of when the file had just been made: 0.
#include "faults/kinds.h"

namespace firedrill {

Status take_stale_stat(const Firing& firing, Effects&) {
  firing.call.file->stale = true;
  return {};
}

}  // namespace firedrill
