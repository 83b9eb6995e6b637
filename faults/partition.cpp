// partition: from then on what the ranks of one node send to those of other nodes is lost, and unless it is `one_way`
// what they are sent, too. Nobody is told.
#include "faults/kinds.h"

namespace firedrill {

Status take_partition(const Firing& firing, Effects& effects) {
  const LinkTrouble cut{.cut = true, .lasts = firing.spec.lasts};
  const std::vector<int> outside = effects.others_in("node");
  for (const int inside : effects.node_ranks()) {
    for (const int other : outside) {
      effects.trouble_link(inside, other, cut);
      if (!firing.spec.one_way) effects.trouble_link(other, inside, cut);
    }
  }
  return {};
}

}  // namespace firedrill
