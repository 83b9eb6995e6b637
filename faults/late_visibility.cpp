// late_visibility: a name that is on the storage is not there yet for one rank: its own looks say so for some `looks`,
// or until a `delay` is over, or one look where neither is given. A listing lacks its newest name.
#include <algorithm>

#include "faults/kinds.h"

namespace firedrill {

Status take_late_visibility(const Firing& firing, Effects& effects) {
  FileCall& call = *firing.call.file;
  call.hidden_looks = std::max(1, firing.spec.looks);
  if (firing.spec.delay > Duration{0}) call.hidden_until = effects.now() + firing.spec.delay;
  return {};
}

}  // namespace firedrill
