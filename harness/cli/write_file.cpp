#include "harness/cli/write_file.h"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace firedrill {
namespace {

namespace fs = std::filesystem;

bool is_replaced(const fs::path& file) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(file, failed);
  return !fs::exists(status) || fs::is_regular_file(status);
}

bool is_directory(const fs::path& file) {
  std::error_code failed;
  return fs::is_directory(file, failed);
}

std::error_code last_error() { return {errno, std::generic_category()}; }

std::error_code write_into(const fs::path& file, std::string_view text) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary);
  if (!stream) return last_error();
  stream << text << std::flush;
  if (!stream) return last_error();
  stream.close();
  return stream ? std::error_code() : last_error();
}

// The process is part of the name, so that it is nobody else's file.
std::error_code replace(const fs::path& file, std::string_view text) {
  const fs::path beside = fmt::format("{}.{}.new", file.string(), ::getpid());
  std::error_code failed = write_into(beside, text);
  if (!failed) fs::rename(beside, file, failed);
  std::error_code ignored;
  if (failed) fs::remove(beside, ignored);
  return failed;
}

}  // namespace

Status write_file(const std::string& file, std::string_view text) {
  if (is_directory(file)) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("cannot write {}: it is a directory", file),
                 .hint = "give the name of a file"};
  }
  const std::error_code failed = is_replaced(file) ? replace(file, text) : write_into(file, text);
  if (!failed) return {};
  const bool full = failed == std::errc::no_space_on_device;
  return Error{.code = Code::io_error,
               .message = fmt::format("cannot write {}: {}", file, failed.message()),
               .hint = full ? "free space, or give a file elsewhere" : "is its directory there, and writable?"};
}

std::vector<std::string> mistakes_in_targets(const std::vector<std::pair<std::string, std::string>>& targets) {
  std::vector<std::string> mistakes;
  std::map<fs::path, std::string> taken;
  for (const auto& [option, file] : targets) {
    if (file.empty() || (file == "-" && option == "--json")) continue;
    if (file == "-") {
      mistakes.push_back(fmt::format("{} -: only --json writes to standard output; give the name of a file", option));
      continue;
    }
    if (is_directory(file)) {
      mistakes.push_back(fmt::format("{} {}: it is a directory; give the name of a file", option, file));
      continue;
    }
    if (!is_replaced(file)) continue;
    std::error_code failed;
    const fs::path place = fs::weakly_canonical(fs::absolute(file, failed), failed);
    if (failed) continue;  // writing says what is wrong
    const auto [other, is_new] = taken.try_emplace(place, option);
    if (!is_new) {
      mistakes.push_back(
          fmt::format("{} and {} are both {}: give each a file of its own", other->second, option, file));
    }
  }
  return mistakes;
}

std::vector<std::string> mistakes_in_targets_of(const fs::path& kept,
                                                const std::vector<std::pair<std::string, std::string>>& targets) {
  std::vector<std::string> mistakes;
  std::error_code failed;
  const fs::path folder = fs::weakly_canonical(fs::absolute(kept, failed), failed);
  if (failed) return mistakes;  // reading says what is wrong
  for (const auto& [option, file] : targets) {
    if (file.empty() || file == "-") continue;
    const fs::path target = fs::weakly_canonical(fs::absolute(file, failed), failed);
    if (failed) continue;
    const fs::path within = target.lexically_relative(folder);
    if (within.empty() || *within.begin() == "..") continue;
    const fs::path name = within.filename();
    const bool own = within == "." || name == "report.json" || name == "plan.json" || name == "history.jsonl" ||
                     std::find(within.begin(), within.end(), "disk") != within.end();
    if (own) {
      mistakes.push_back(
          fmt::format("{} {}: it would write over what {} keeps; give another file", option, file, kept.string()));
    }
  }
  return mistakes;
}

}  // namespace firedrill
