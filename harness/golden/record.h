// Recording: from the history of an undisturbed run to a golden.
#pragma once

#include "harness/golden/golden.h"

namespace firedrill {

// Errors: internal, if the history does not hold every step.
Result<Golden> golden_from(const History& history, const Job& job, const GoldenKey& key);

}  // namespace firedrill
