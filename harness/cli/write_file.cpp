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

bool is_a_directory(const fs::path& file) {
  std::error_code failed;
  return fs::is_directory(file, failed);
}

// Where it would lie; as it is given if that cannot be told: writing says what is wrong.
fs::path full_path(const fs::path& file) {
  std::error_code failed;
  const fs::path full = fs::weakly_canonical(fs::absolute(file, failed), failed);
  return failed ? file : full;
}

// Whether the path, relative to another one, leads to it or below it.
bool is_within(const fs::path& relative) { return !relative.empty() && *relative.begin() != ".."; }

// Empty: it can be written into, as far as can be told.
std::string wrong_with_directory_of(const fs::path& file, const fs::path& made) {
  const fs::path directory = file.has_parent_path() ? file.parent_path() : ".";
  if (is_a_directory(directory)) return {};
  if (!made.empty() && full_path(directory) == full_path(made)) return {};
  std::error_code failed;
  return fs::exists(directory, failed) ? fmt::format("{} is not a directory", directory.string())
                                       : fmt::format("{} is not there", directory.string());
}

// What a run keeps in its folder, and what lies in a root of checkpoints.
bool is_kept(const fs::path& within) {
  static constexpr std::string_view files[] = {"report.json", "plan.json", "history.jsonl"};
  static constexpr std::string_view directories[] = {"disk",     "shards",     "manifests", "validated",
                                                     "rejected", "tombstones", "attempts",  "catalog"};
  const auto is_in = [](const std::string& name, const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return within == "." || is_in(within.filename().string(), files) || is_in(within.begin()->string(), directories) ||
         std::find(within.begin(), within.end(), "disk") != within.end();
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
  if (is_a_directory(file)) {
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

std::vector<std::string> mistakes_in_targets(const std::vector<std::pair<std::string, std::string>>& targets,
                                             const fs::path& made) {
  std::vector<std::string> mistakes;
  std::map<fs::path, std::string> taken;
  for (const auto& [option, file] : targets) {
    if (file.empty() || (file == "-" && option == "--json")) continue;
    if (file == "-") {
      mistakes.push_back(fmt::format("{} -: only --json writes to standard output; give the name of a file", option));
      continue;
    }
    if (is_a_directory(file)) {
      mistakes.push_back(fmt::format("{} {}: it is a directory; give the name of a file", option, file));
      continue;
    }
    if (const std::string wrong = wrong_with_directory_of(file, made); !wrong.empty()) {
      mistakes.push_back(fmt::format("{} {}: {}; make it first, or give a file elsewhere", option, file, wrong));
      continue;
    }
    if (!is_replaced(file)) continue;
    const auto [other, is_new] = taken.try_emplace(full_path(file), option);
    if (!is_new) {
      mistakes.push_back(
          fmt::format("{} and {} are both {}: give each a file of its own", other->second, option, file));
    }
  }
  return mistakes;
}

std::vector<std::string> mistakes_in_targets_of(const fs::path& kept,
                                                const std::vector<std::pair<std::string, std::string>>& targets) {
  static constexpr std::string_view plan_of_a_run = "plan.json";
  const bool is_folder = is_a_directory(kept) || kept.filename() != plan_of_a_run;
  const fs::path place = full_path(is_folder ? kept : kept.parent_path());
  std::vector<std::string> mistakes;
  for (const auto& [option, file] : targets) {
    if (file.empty() || file == "-") continue;
    const fs::path within = full_path(file).lexically_relative(place);
    if (!is_within(within) || !is_kept(within)) continue;
    mistakes.push_back(
        fmt::format("{} {}: it would write over what {} keeps; give another file", option, file, kept.string()));
  }
  return mistakes;
}

}  // namespace firedrill
