// One plan to one RunReport, with its folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "harness/run/run.h"

namespace firedrill {

// Makes `directory` if it is given. An error of the run becomes the report's reason: refused if the input was bad, else
// unknown.
RunReport run_one(Session& session, const Plan& plan, const std::optional<std::filesystem::path>& directory);

// The report of a plan that was not run.
RunReport refused_run(const Plan& plan, const std::string& reason);

}  // namespace firedrill
