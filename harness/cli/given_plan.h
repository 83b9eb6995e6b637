// A saved plan as it is given to a verb: the folder that a run was kept in, or a plan file. It is held against the same
// rules as a scenario, since a plan may have been written or changed by hand.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/plan/plan.h"

namespace firedrill {

// The plan file that is meant.
std::filesystem::path plan_file_of(const std::filesystem::path& given);
// Absent if there are mistakes; each names the file, the value and the remedy.
std::optional<Plan> read_given_plan(const std::filesystem::path& given, std::vector<std::string>& mistakes);

}  // namespace firedrill
