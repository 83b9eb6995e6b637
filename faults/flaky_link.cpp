// flaky_link: from then on every n-th message between the rank and some others is lost on its way and sent again, so it
// comes later, by `delay`.
#include "faults/kinds.h"
#include "faults/links.h"

namespace firedrill {

Status take_flaky_link(const Firing& firing, Effects& effects) {
  trouble_links(firing, effects,
                {.lose_every = firing.spec.every, .again = firing.spec.delay, .lasts = firing.spec.lasts});
  return {};
}

}  // namespace firedrill
