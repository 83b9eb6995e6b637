// stale_listing: one rank gets a listing of before the newest name was made (of numbered names, the highest one).
#include "faults/kinds.h"

namespace firedrill {

Status take_stale_listing(const Firing& firing, Effects&) {
  firing.call.file->stale = true;
  return {};
}

}  // namespace firedrill
