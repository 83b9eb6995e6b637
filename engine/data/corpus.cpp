#include "engine/data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

namespace firedrill {
namespace {

namespace fs = std::filesystem;

constexpr const char* remedy =
    "data.corpus names a file or a directory of text; every Debian and Ubuntu carries "
    "/usr/share/common-licenses/GPL-3";

Error unreadable(const std::string& path, const std::string& why) {
  return Error{.code = Code::io_error,
               .message = fmt::format("corpus {} cannot be read: {}", path, why),
               .hint = "check that the file exists and that this user may read it"};
}

// Appends the file's bytes to `text`.
Status append_file(const std::string& path, std::string& text) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return unreadable(path, "it does not open");
  char buffer[1 << 16];
  while (stream.read(buffer, sizeof(buffer)) || stream.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return unreadable(path, "reading it failed");
  return {};
}

// The regular files under `directory`, ordered bytewise by their path below it.
Result<std::vector<std::string>> files_under(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entries(directory, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const bool hidden = entries->path().filename().string().starts_with('.');
    const fs::file_status status = entries->symlink_status(error);
    if (error) break;
    if (hidden && fs::is_directory(status)) entries.disable_recursion_pending();
    if (!hidden && fs::is_regular_file(status)) files.push_back(entries->path().string());
  }
  if (error) return unreadable(directory, error.message());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Result<Corpus> load_corpus(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return Error{
        .code = Code::not_found, .message = fmt::format("corpus {}: no such file or directory", path), .hint = remedy};
  }
  if (error) return unreadable(path, error.message());
  std::vector<std::string> files = {path};
  if (fs::is_directory(status)) {
    FD_TRY(files, files_under(path));
  } else if (!fs::is_regular_file(status)) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("corpus {} is neither a file nor a directory", path),
                 .hint = remedy};
  }
  std::string text;
  for (const std::string& file : files) FD_TRY_VOID(append_file(file, text));
  if (text.empty()) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("corpus {} holds no text: 0 bytes in {} files", path, files.size()),
                 .hint = remedy};
  }
  Corpus corpus = corpus_from(text);
  corpus.path = path;
  corpus.files = static_cast<int>(files.size());
  return corpus;
}

Corpus corpus_from(std::string_view text) {
  Corpus corpus{.path = "(memory)", .files = 1, .text = Value::copy_of(text), .digest = {}};
  corpus.digest = corpus.text.digest();
  return corpus;
}

CorpusSplit split_corpus(const Corpus& corpus, double held_out) {
  FD_CHECK(held_out >= 0.0 && held_out <= 0.5, "held_out {}", held_out);
  const std::int64_t bytes = corpus.text.count();
  const auto kept = static_cast<std::int64_t>(std::floor(static_cast<double>(bytes) * held_out));
  if (kept == 0) return {.training = corpus.text, .held_out = corpus.text.slice(bytes, 0)};
  return {.training = corpus.text.slice(0, bytes - kept), .held_out = corpus.text.slice(bytes - kept, kept)};
}

}  // namespace firedrill
