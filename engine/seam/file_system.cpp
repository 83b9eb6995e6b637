#include "engine/seam/file_system.h"

#include <array>

namespace firedrill {

std::string_view to_string(FileOp op) {
  static constexpr std::array<std::string_view, file_op_count> names = {
      "create", "open",   "write",  "read",           "sync",           "close",      "stat",
      "list",   "rename", "remove", "make_directory", "sync_directory", "drop_cache", "free_space"};
  return names[static_cast<std::size_t>(op)];
}

bool changes_disk(FileOp op) {
  switch (op) {
    case FileOp::create:
    case FileOp::write:
    case FileOp::sync:
    case FileOp::rename:
    case FileOp::remove:
    case FileOp::make_directory:
    case FileOp::sync_directory: return true;
    default: return false;
  }
}

std::string_view parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace firedrill
