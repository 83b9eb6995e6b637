#include "harness/preflight/control_groups.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "engine/base/text.h"

namespace firedrill::preflight {
namespace {

namespace fs = std::filesystem;

// The first word of a file as a number; "max", -1 and a missing file are none.
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t number = -1;
  if (!(in >> number) || number < 0) return std::nullopt;
  return number;
}

// Behind a key in a file of keys and numbers; 0: not there.
std::int64_t number_of(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  std::string word;
  for (std::int64_t number = 0; in >> word >> number;) {
    if (word == key) return number;
  }
  return 0;
}

std::vector<fs::path> up_from(const fs::path& hierarchy, const fs::path& group) {
  std::vector<fs::path> folders;
  for (fs::path at = group.relative_path(); !at.empty(); at = at.parent_path()) folders.push_back(hierarchy / at);
  folders.push_back(hierarchy);
  return folders;
}

std::int64_t left_of(const fs::path& limit_file, const fs::path& used_file, const fs::path& folder,
                     const std::string& droppable, std::int64_t bytes) {
  const std::optional<std::int64_t> limit = number_in(limit_file);
  const std::optional<std::int64_t> used = number_in(used_file);
  if (!limit || !used) return bytes;
  const std::int64_t held = std::max<std::int64_t>(*used - number_of(folder / "memory.stat", droppable), 0);
  return std::min(bytes, std::max<std::int64_t>(*limit - held, 0));
}

}  // namespace

ControlGroups::ControlGroups(const fs::path& root, const fs::path& membership) {
  std::ifstream in(membership);
  for (std::string line; std::getline(in, line);) {  // "4:memory:/a/b"; of version 2 "0::/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string group = line.substr(second + 1);
    const std::vector<std::string> controllers = split(line.substr(first + 1, second - first - 1), ',');
    const auto has = [&](std::string_view name) { return std::ranges::find(controllers, name) != controllers.end(); };
    if (has("cpu")) cpu_ = up_from(root / "cpu", group);
    if (has("memory")) memory_ = up_from(root / "memory", group);
    // Beside groups of version 1 those of version 2 have a place of their own.
    if (second == first + 1) unified_ = up_from(fs::exists(root / "unified") ? root / "unified" : root, group);
  }
}

double ControlGroups::cores_within(double cores) const {
  const auto within = [&cores](std::optional<std::int64_t> quota, std::optional<std::int64_t> period) {
    if (quota && period && *period > 0) {
      cores = std::min(cores, static_cast<double>(*quota) / static_cast<double>(*period));
    }
  };
  for (const fs::path& folder : cpu_) {
    within(number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us"));
  }
  for (const fs::path& folder : unified_) {
    std::ifstream in(folder / "cpu.max");  // "25000 100000"
    std::int64_t quota = 0;
    std::int64_t period = 0;
    if (in >> quota >> period) within(quota, period);
  }
  return cores;
}

std::int64_t ControlGroups::memory_within(std::int64_t bytes) const {
  for (const fs::path& at : memory_) {
    bytes = left_of(at / "memory.limit_in_bytes", at / "memory.usage_in_bytes", at, "total_inactive_file", bytes);
  }
  for (const fs::path& at : unified_) {
    bytes = left_of(at / "memory.max", at / "memory.current", at, "inactive_file", bytes);
  }
  return bytes;
}

}  // namespace firedrill::preflight
