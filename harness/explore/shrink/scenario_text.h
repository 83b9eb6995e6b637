// ScenarioText: a plan as the scenario file that a person reads and checks in. The job is named by its file where there
// is one, with `set:` for what differs from it; else it is written beside the scenario.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "harness/plan/plan.h"

namespace firedrill {

struct ScenarioText {
  std::string text;
  std::filesystem::path job_file;  // that must be written too; empty: the job is there already
  std::string job_text;            // of it
};

// As `file` will hold it. `job_files` are looked at in turn for the job's own; `comment` stands in front, a line each.
// Reading it gives the same job, layouts, faults, recovery, expectation, world and seed. Errors: internal, if it does
// not.
Result<ScenarioText> scenario_text(const Plan& plan, const std::filesystem::path& file,
                                   std::span<const std::filesystem::path> job_files, const std::string& comment);

// Where the job of a plan may stand: what its scenario names, and each NAME.yaml below `directory`.
std::vector<std::filesystem::path> job_files_of(const Plan& plan, const std::filesystem::path& directory);

// Writes it, and the job if need be. Errors: as scenario_text; io_error.
Status write_scenario(const Plan& plan, const std::filesystem::path& file,
                      std::span<const std::filesystem::path> job_files, const std::string& comment);

}  // namespace firedrill
