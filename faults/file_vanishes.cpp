// file_vanishes: a file that was listed is gone when it is opened: another hand has deleted it. It stays so.
#include "faults/kinds.h"

namespace firedrill {

Status take_file_vanishes(const Firing& firing, Effects& effects) {
  Status removed = effects.storage().remove(firing.call.path);
  if (removed.failed_with(Code::not_found)) return {};
  return removed;
}

}  // namespace firedrill
