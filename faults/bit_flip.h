// Where in a kernel's result a target lies: shared by the kinds that damage computations.
#pragma once

#include "faults/damage.h"

namespace firedrill {

Spot spot_of(Target target);

}  // namespace firedrill
