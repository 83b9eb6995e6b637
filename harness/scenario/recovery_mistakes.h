// What a recovery policy needs, against the rest of its scenario.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/scenario.h"

namespace firedrill {

// Each names the value, the field ("recovery.spares ...") and the remedy.
std::vector<std::string> mistakes_in_recovery(const Scenario& scenario);

}  // namespace firedrill
