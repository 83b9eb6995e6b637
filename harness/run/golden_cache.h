// Golden cache: goldens that no one has recorded, kept from one session to the next as files of the golden format.
#pragma once

#include <filesystem>
#include <string>

#include "harness/golden/golden.h"

namespace firedrill {

// The golden of the key: from a file of the directory, or recorded now and kept there. An empty directory keeps
// nothing. `note` says which.
Result<Golden> kept_or_recorded(const std::filesystem::path& directory, const Job& job, const Model& model,
                                const Corpus& corpus, const GoldenKey& key, std::string& note);

}  // namespace firedrill
