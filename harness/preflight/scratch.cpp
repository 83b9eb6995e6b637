#include "harness/preflight/scratch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace firedrill::preflight {
namespace {

Error error_of(Code code, FileOp op, std::string_view path) {
  return Error{.code = code, .message = fmt::format("{} of {} failed: {}", to_string(op), path, to_string(code))};
}

}  // namespace

class ScratchFileSystem::ScratchFile final : public File {
 public:
  explicit ScratchFile(Bytes bytes) : bytes_(std::move(bytes)) {}

  Status write(std::int64_t offset, const Value& bytes) override {
    const auto at = static_cast<std::size_t>(offset);
    bytes_->resize(std::max(bytes_->size(), at + bytes.size()));
    if (bytes.size() > 0) std::memcpy(bytes_->data() + at, bytes.bytes().data(), bytes.size());
    return {};
  }
  Result<Value> read(std::int64_t offset, std::int64_t size) override {
    const std::size_t at = std::min(static_cast<std::size_t>(offset), bytes_->size());
    return Value::copy_of(std::string_view(*bytes_).substr(at, static_cast<std::size_t>(size)));
  }
  Result<std::int64_t> size() override { return static_cast<std::int64_t>(bytes_->size()); }
  Status sync() override { return {}; }
  Status close() override { return {}; }

 private:
  Bytes bytes_;
};

bool ScratchFileSystem::exists(std::string_view path) { return path.empty() || stat(path).ok(); }

void ScratchFileSystem::make(std::string_view path, Bytes bytes) {
  made_.insert_or_assign(std::string(path), std::move(bytes));
}

Result<std::unique_ptr<File>> ScratchFileSystem::create(std::string_view path) {
  if (exists(path)) return error_of(Code::already_exists, FileOp::create, path);
  if (!exists(parent_path(path))) return error_of(Code::not_found, FileOp::create, path);
  auto bytes = std::make_shared<std::string>();
  make(path, bytes);
  return Result<std::unique_ptr<File>>(std::make_unique<ScratchFile>(std::move(bytes)));
}

Result<std::unique_ptr<File>> ScratchFileSystem::open(std::string_view path) {
  const auto made = made_.find(path);
  if (made != made_.end() && made->second) {
    return Result<std::unique_ptr<File>>(std::make_unique<ScratchFile>(made->second));
  }
  if (removed_.contains(path)) return error_of(Code::not_found, FileOp::open, path);
  return below_.open(path);
}

Result<FileInfo> ScratchFileSystem::stat(std::string_view path) {
  if (const auto made = made_.find(path); made != made_.end()) {
    if (!made->second) return FileInfo{.kind = FileKind::directory};
    return FileInfo{.kind = FileKind::file, .size = static_cast<std::int64_t>(made->second->size())};
  }
  if (removed_.contains(path)) return error_of(Code::not_found, FileOp::stat, path);
  return below_.stat(path);
}

Result<std::vector<std::string>> ScratchFileSystem::list(std::string_view directory) {
  if (!exists(directory)) return error_of(Code::not_found, FileOp::list, directory);
  const auto path_of = [directory](std::string_view name) {
    return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
  };
  std::set<std::string> names;
  if (!made_.contains(directory)) {
    FD_TRY(const std::vector<std::string> below, below_.list(directory));
    for (const std::string& name : below) {
      if (!removed_.contains(path_of(name))) names.insert(name);
    }
  }
  for (const auto& [path, bytes] : made_) {
    if (parent_path(path) == directory) names.emplace(file_name(path));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Status ScratchFileSystem::rename(std::string_view from, std::string_view to) {
  FD_TRY(const std::unique_ptr<File> file, open(from));
  FD_TRY(const std::int64_t size, file->size());
  FD_TRY(const Value bytes, file->read(0, size));
  const auto made = made_.find(from);
  // One that is open keeps its bytes under the new name.
  Bytes moved = made != made_.end() ? made->second : std::make_shared<std::string>(bytes.text());
  FD_TRY_VOID(remove(from));
  removed_.insert(std::string(to));
  make(to, std::move(moved));
  return {};
}

Status ScratchFileSystem::remove(std::string_view path) {
  if (!exists(path)) return error_of(Code::not_found, FileOp::remove, path);
  if (const auto made = made_.find(path); made != made_.end()) made_.erase(made);
  removed_.insert(std::string(path));
  return {};
}

Status ScratchFileSystem::make_directory(std::string_view path) {
  if (exists(path)) return error_of(Code::already_exists, FileOp::make_directory, path);
  if (!exists(parent_path(path))) return error_of(Code::not_found, FileOp::make_directory, path);
  make(path, nullptr);
  return {};
}

Status ScratchFileSystem::drop_cache(std::string_view path) {
  return made_.contains(path) ? Status() : below_.drop_cache(path);
}

}  // namespace firedrill::preflight
