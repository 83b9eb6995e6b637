// What the faults of links do alike.
#pragma once

#include "faults/effects.h"

namespace firedrill {

// Both directions between the rank and `peer`, or the other members of `group`, or all others.
inline void trouble_links(const Firing& firing, Effects& effects, const LinkTrouble& trouble) {
  const int own = firing.position.rank;
  const std::vector<int> others =
      firing.spec.peer ? std::vector<int>{*firing.spec.peer} : effects.others_in(firing.spec.group);
  for (const int other : others) {
    effects.trouble_link(own, other, trouble);
    effects.trouble_link(other, own, trouble);
  }
}

}  // namespace firedrill
