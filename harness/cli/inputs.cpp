#include "harness/cli/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "engine/base/text.h"
#include "harness/check/properties.h"

namespace firedrill {

namespace fs = std::filesystem;

std::vector<fs::path> yaml_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->is_regular_file() && entry->path().extension() == ".yaml") files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool matches_filter(const std::string& filter, const fs::path& file) {
  return filter.empty() || matches_glob(filter, file.string()) || matches_glob(filter, file.stem().string());
}

std::vector<fs::path> scenario_files(const std::vector<std::string>& given, const std::string& filter,
                                     std::vector<std::string>& mistakes) {
  std::vector<fs::path> files;
  for (const std::string& text : given) {
    const fs::path path(text);
    std::error_code failed;
    if (!fs::is_directory(path, failed)) {
      if (!fs::exists(path, failed)) {
        mistakes.push_back(fmt::format("{}: there is no such file or directory", text));
      } else {
        files.push_back(path);
      }
      continue;
    }
    const std::size_t before = files.size();
    for (const fs::path& file : yaml_files(path)) {
      if (is_scenario_file(file)) files.push_back(file);
    }
    if (files.size() == before) {
      mistakes.push_back(fmt::format("{}: no scenario (*.yaml with `schema: firedrill.scenario/1`) is below it", text));
    }
  }
  const bool any = !files.empty();
  std::erase_if(files, [&filter](const fs::path& file) { return !matches_filter(filter, file); });
  if (any && files.empty()) mistakes.push_back(fmt::format("--filter {}: it matches none of the scenarios", filter));
  return files;
}

std::vector<Scenario> load_scenarios(const std::vector<fs::path>& files, const CommonOptions& common,
                                     std::optional<WorldKind> world, std::vector<std::string>& mistakes) {
  LoadOptions options{.set = common.set, .properties = {}, .world = world};
  for (const Property& property : properties()) options.properties.emplace_back(property.name);
  std::vector<Scenario> scenarios;
  for (const fs::path& file : files) {
    Loaded<Scenario> loaded = load_scenario(file, options);
    // A mistake in --set, or in a job that several scenarios share, is said once.
    for (std::string& mistake : loaded.mistakes) {
      if (std::find(mistakes.begin(), mistakes.end(), mistake) == mistakes.end())
        mistakes.push_back(std::move(mistake));
    }
    if (loaded) scenarios.push_back(std::move(*loaded));
  }
  return scenarios;
}

std::string summary_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string summary;
  std::string line;
  while (std::getline(stream, line) && line.starts_with('#')) {
    const std::size_t start = line.find_first_not_of("# ");
    if (start != std::string::npos) summary += (summary.empty() ? "" : " ") + line.substr(start);
  }
  const std::size_t end = summary.find(". ");
  return end == std::string::npos ? summary : summary.substr(0, end + 1);
}

}  // namespace firedrill
