// Recording: from the history of an undisturbed run to a golden.
#pragma once

#include "harness/golden/golden.h"

namespace firedrill {

// Errors: internal, if the history does not hold every step.
Result<Golden> golden_from(const History& history, const Job& job, const GoldenKey& key);

// Errors: internal, if a tensor that the history holds whole is not the golden's.
Status add_runs(const History& history, Golden& golden);

// "w[64:128]", and the tensor that it is a run of.
bool is_run(std::string_view name);
std::string_view tensor_of_run(std::string_view name);

}  // namespace firedrill
