// Inputs: from what stands on the command line to scenario and job files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/cli/options.h"
#include "harness/scenario/scenario.h"

namespace firedrill {

// Scenario files in the order given; a directory stands for all below it, in name order. `filter` is a glob on the path
// or the name without its ending; empty: all. Missing paths, directories without scenarios and a filter that leaves
// nothing are mistakes.
std::vector<std::filesystem::path> scenario_files(const std::vector<std::string>& given, const std::string& filter,
                                                  std::vector<std::string>& mistakes);

// Every scenario, or every mistake of all of them.
std::vector<Scenario> load_scenarios(const std::vector<std::filesystem::path>& files, const CommonOptions& common,
                                     std::optional<WorldKind> world, std::vector<std::string>& mistakes);

// The sentence of the comment that a file opens with, on one line.
std::string summary_of(const std::filesystem::path& file);

// All *.yaml below a directory, in name order.
std::vector<std::filesystem::path> yaml_files(const std::filesystem::path& directory);

bool matches_filter(const std::string& filter, const std::filesystem::path& file);

}  // namespace firedrill
