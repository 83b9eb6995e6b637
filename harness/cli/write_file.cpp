#include "harness/cli/write_file.h"

#include <fmt/format.h>
#include <unistd.h>

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

bool write_into(const fs::path& file, std::string_view text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  return static_cast<bool>(stream);
}

// The process is part of the name, so that it is nobody else's file.
bool replace(const fs::path& file, std::string_view text) {
  const fs::path beside = fmt::format("{}.{}.new", file.string(), ::getpid());
  std::error_code failed;
  bool done = write_into(beside, text);
  if (done) {
    fs::rename(beside, file, failed);
    done = !failed;
  }
  if (!done) fs::remove(beside, failed);
  return done;
}

}  // namespace

Status write_file(const std::string& file, std::string_view text) {
  if (is_directory(file)) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("cannot write {}: it is a directory", file),
                 .hint = "give the name of a file"};
  }
  if (is_replaced(file) ? replace(file, text) : write_into(file, text)) return {};
  return Error{.code = Code::io_error,
               .message = fmt::format("cannot write {}", file),
               .hint = "is its directory there, and writable?"};
}

std::vector<std::string> mistakes_in_targets(const std::vector<std::pair<std::string, std::string>>& targets) {
  std::vector<std::string> mistakes;
  std::map<fs::path, std::string> taken;
  for (const auto& [option, file] : targets) {
    if (file.empty() || file == "-") continue;
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

}  // namespace firedrill
