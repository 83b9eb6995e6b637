// DirectoryFileSystem: FileSystem over a real directory. Every call is a system call on a descriptor of the root;
// nothing is cached here. A path that leaves the root ("..", a leading slash, a symbolic link anywhere in it) is
// refused with io_error. Interrupted calls are tried again, short writes go on; no other failure is retried.
//
// Modification times are the system's, since 1970.
//
// Threads: calls on different objects may run at once. Errors: ENOENT not_found, EEXIST already_exists, ENOSPC and
// EDQUOT no_space, all others io_error; the message names operation, path and reason.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "engine/os/descriptor.h"
#include "engine/seam/file_system.h"

namespace firedrill {

class DirectoryFileSystem final : public FileSystem {
 public:
  // The directory must exist. Errors: not_found, io_error.
  static Result<std::unique_ptr<DirectoryFileSystem>> open_root(const std::filesystem::path& root);

  Result<std::unique_ptr<File>> create(std::string_view path) override;
  Result<std::unique_ptr<File>> open(std::string_view path) override;
  Result<FileInfo> stat(std::string_view path) override;
  Result<std::vector<std::string>> list(std::string_view directory) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status make_directory(std::string_view path) override;
  Status sync_directory(std::string_view directory) override;
  Status drop_cache(std::string_view path) override;
  Result<std::int64_t> free_space() override;

  // Beside the seam, for damage at rest: new bytes in a file that is there. Errors: not_found, io_error.
  Status overwrite(std::string_view path, std::int64_t offset, const Value& bytes);

 private:
  explicit DirectoryFileSystem(Descriptor root) : root_(std::move(root)) {}
  // Errors name `path`, which is in the directory or the directory itself.
  Result<Descriptor> open_directory(FileOp op, std::string_view directory, std::string_view path) const;
  Result<Descriptor> open_file(FileOp op, std::string_view path, int access) const;

  Descriptor root_;
};

}  // namespace firedrill
