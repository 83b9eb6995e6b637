// Where recorded goldens lie: `golden/` beside the `scenarios/` that the job or scenario is in, else in the working
// directory.
#pragma once

#include <filesystem>

namespace firedrill {

std::filesystem::path golden_directory_of(const std::filesystem::path& file);

}  // namespace firedrill
