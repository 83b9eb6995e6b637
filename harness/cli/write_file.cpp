#include "harness/cli/write_file.h"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>

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

constexpr std::string_view files_of_a_run[] = {"report.json", "plan.json", "history.jsonl"};
constexpr std::string_view directories_of_checkpoints[] = {"shards",     "manifests", "validated", "rejected",
                                                           "tombstones", "attempts",  "catalog"};

bool is_in(const fs::path& name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name.string()) != names.end();
}

bool is_there(const fs::path& file) {
  std::error_code failed;
  return fs::exists(file, failed);
}

// Where it would lie, without a slash at the end; as it is given if that cannot be told: writing says what is wrong.
fs::path full_path(const fs::path& file) {
  std::error_code failed;
  fs::path full = fs::weakly_canonical(fs::absolute(file, failed), failed);
  if (failed) full = file;
  return full.has_filename() ? full : full.parent_path();
}

// Whether the path, relative to another one, leads to it or below it.
bool is_within(const fs::path& relative) { return !relative.empty() && *relative.begin() != ".."; }

// Making `made` makes all directories above it, too. One that is not there yet cannot be left by `..`.
bool will_be_made(const fs::path& directory, const fs::path& made) {
  if (made.empty() || std::find(directory.begin(), directory.end(), "..") != directory.end()) return false;
  return is_within(full_path(made).lexically_relative(full_path(directory)));
}

// Empty: a file can be put there, as far as can be told.
std::string wrong_with_directory_of(const fs::path& file, const fs::path& made) {
  const fs::path directory = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code failed;
  const fs::file_status status = fs::status(directory, failed);
  if (fs::is_directory(status)) {
    const bool writable = !is_replaced(file) || ::access(directory.c_str(), W_OK | X_OK) == 0;
    return writable ? std::string() : fmt::format("{} cannot be written to", directory.string());
  }
  if (will_be_made(directory, made)) return {};
  if (fs::exists(status)) return fmt::format("{} is not a directory", directory.string());
  if (status.type() == fs::file_type::not_found) return fmt::format("{} is not there", directory.string());
  return fmt::format("{}: {}", directory.string(), failed.message());
}

// A file of a run that is kept there or below, or one in a root of checkpoints.
bool is_kept(const fs::path& place, const fs::path& within) {
  if (within == ".") return true;
  const fs::path folder = (place / within).parent_path();
  const bool is_root = is_there(place / "shards");
  const bool is_run = is_there(folder / "plan.json") || is_there(folder / "history.jsonl") ||
                      (folder == place && !is_root && is_there(folder / "report.json"));
  if (is_run && is_in(within.filename(), files_of_a_run)) return true;
  if (is_root && is_in(*within.begin(), directories_of_checkpoints)) return true;
  return std::find(within.begin(), within.end(), "disk") != within.end();
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
    const fs::path within_made = made.empty() ? fs::path() : full_path(file).lexically_relative(full_path(made));
    if ((is_in(within_made, files_of_a_run) && !(option == "--json" && within_made == "report.json")) ||
        (is_within(within_made) && *within_made.begin() == "disk")) {
      mistakes.push_back(fmt::format("{} {}: --out keeps a file of its own there; give another name", option, file));
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
  const bool is_plan = !is_a_directory(kept) && kept.filename() == "plan.json";
  const fs::path place = is_plan ? full_path(kept).parent_path() : full_path(kept);
  std::vector<std::string> mistakes;
  for (const auto& [option, file] : targets) {
    if (file.empty() || file == "-") continue;
    const fs::path within = full_path(file).lexically_relative(place);
    if (!is_within(within) || !is_kept(place, within)) continue;
    mistakes.push_back(
        fmt::format("{} {}: it would write over what {} keeps; give another file", option, file, kept.string()));
  }
  return mistakes;
}

}  // namespace firedrill
