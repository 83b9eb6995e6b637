#include "harness/cli/golden_place.h"

namespace firedrill {

std::filesystem::path golden_directory_of(const std::filesystem::path& file) {
  std::filesystem::path directory = std::filesystem::absolute(file).lexically_normal().parent_path();
  for (; directory.has_relative_path(); directory = directory.parent_path()) {
    if (directory.filename() == "scenarios") return directory.parent_path() / "golden";
  }
  return "golden";
}

}  // namespace firedrill
