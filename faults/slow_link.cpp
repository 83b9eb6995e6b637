// slow_link: from then on messages between the rank and some others take longer, by `delay`.
#include "faults/kinds.h"
#include "faults/links.h"

namespace firedrill {

Status take_slow_link(const Firing& firing, Effects& effects) {
  trouble_links(firing, effects, {.slower = firing.spec.delay, .lasts = firing.spec.lasts});
  return {};
}

}  // namespace firedrill
