// wrong_dtype: the rank reduces elements of another type than its peers: whole numbers in place of fractions.
#include "faults/kinds.h"

namespace firedrill {

Status take_wrong_dtype(const Firing& firing, Effects&) {
  firing.call.collective->wrong_dtype = true;
  return {};
}

}  // namespace firedrill
