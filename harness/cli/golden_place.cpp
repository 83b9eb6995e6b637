#include "harness/cli/golden_place.h"

namespace firedrill {
namespace {

// What holds `scenarios/`; empty: the working directory.
std::filesystem::path home_of(const std::filesystem::path& file) {
  if (file.empty()) return {};  // a plan of no scenario
  std::filesystem::path directory = std::filesystem::absolute(file).lexically_normal().parent_path();
  for (; directory.has_relative_path(); directory = directory.parent_path()) {
    if (directory.filename() == "scenarios") return directory.parent_path();
  }
  return {};
}

}  // namespace

std::filesystem::path golden_directory_of(const std::filesystem::path& file) { return home_of(file) / "golden"; }
std::filesystem::path jobs_directory_of(const std::filesystem::path& file) { return home_of(file) / "scenarios/jobs"; }

}  // namespace firedrill
