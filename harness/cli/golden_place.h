// Where the shipped files lie that a job or scenario does not name: recorded goldens in `golden/` beside the
// `scenarios/` that it is in, the jobs of mutants in `scenarios/jobs/`; else both in the working directory.
#pragma once

#include <filesystem>

namespace firedrill {

std::filesystem::path golden_directory_of(const std::filesystem::path& file);
std::filesystem::path jobs_directory_of(const std::filesystem::path& file);

}  // namespace firedrill
