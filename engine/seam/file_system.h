// FileSystem: the disk as a rank sees it. Paths are relative to the checkpoint root, with `/` between the parts, no
// `.`, no `..`; "" is the root itself, which always exists.
//
// What is durable after a call returns: nothing, but for the syncs. File::sync makes the file's data and size last, not
// its name; sync_dir makes all names of that directory last, and no data. See each profile in faults/ for what a crash
// may leave of the rest.
//
// Threads: one call at a time per object. Every call may fail with dead, fenced or io_error; the others are named
// below.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/seam/clock.h"

namespace firedrill {

enum class FileKind : std::uint8_t { file, directory };

struct FileInfo {
  FileKind kind = FileKind::file;
  std::int64_t size = 0;  // bytes; 0 for a directory
  // When the content last changed, by the clock of the node that wrote it: it may be wrong. Nothing may decide by it.
  Time modified{0};
};

class File {
 public:
  virtual ~File() = default;  // closes without reporting
  // Writes all bytes at `offset` or fails; after a failure the contents of the range are unknown. Errors: no_space.
  virtual Status write(std::int64_t offset, const Value& bytes) = 0;
  // At most `size` bytes, fewer at the end of the file. On a real disk the Value's digest is not known.
  virtual Result<Value> read(std::int64_t offset, std::int64_t size) = 0;
  virtual Result<std::int64_t> size() = 0;
  // Data and size are durable when it returns well. After a failure nothing is promised, and a second sync that returns
  // well promises nothing either.
  virtual Status sync() = 0;
  // May report an error of an earlier write.
  virtual Status close() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Makes a new, empty file, open for writing and reading. Exclusive. Errors: already_exists, not_found (parent),
  // no_space.
  virtual Result<std::unique_ptr<File>> create(std::string_view path) = 0;
  // Opens an existing file for reading. Errors: not_found.
  virtual Result<std::unique_ptr<File>> open(std::string_view path) = 0;
  // Errors: not_found. A symbolic link is an error: io_error.
  virtual Result<FileInfo> stat(std::string_view path) = 0;
  // Names in the directory, sorted bytewise. Errors: not_found.
  virtual Result<std::vector<std::string>> list(std::string_view directory) = 0;
  // Replaces `to` if it is a file. Observers see the old or the new, never neither. Errors: not_found.
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  // Removes a file or an empty directory. Errors: not_found, io_error (directory not empty).
  virtual Status remove(std::string_view path) = 0;
  // Errors: already_exists, not_found (parent), no_space.
  virtual Status make_directory(std::string_view path) = 0;
  // Names made, renamed or removed in `directory` before the call are durable when it returns well.
  virtual Status sync_directory(std::string_view directory) = 0;
  // Later reads of the file come from the storage, not from this node's cache (best effort; data not yet synced stays).
  virtual Status drop_cache(std::string_view path) = 0;
  // Bytes that can still be written.
  virtual Result<std::int64_t> free_space() = 0;
};

class ForwardingFile : public File {
 public:
  explicit ForwardingFile(std::unique_ptr<File> inner) : inner_(std::move(inner)) {}
  Status write(std::int64_t offset, const Value& bytes) override { return inner_->write(offset, bytes); }
  Result<Value> read(std::int64_t offset, std::int64_t size) override { return inner_->read(offset, size); }
  Result<std::int64_t> size() override { return inner_->size(); }
  Status sync() override { return inner_->sync(); }
  Status close() override { return inner_->close(); }

 protected:
  std::unique_ptr<File> inner_;
};

class ForwardingFileSystem : public FileSystem {
 public:
  explicit ForwardingFileSystem(FileSystem& inner) : inner_(inner) {}
  Result<std::unique_ptr<File>> create(std::string_view path) override { return inner_.create(path); }
  Result<std::unique_ptr<File>> open(std::string_view path) override { return inner_.open(path); }
  Result<FileInfo> stat(std::string_view path) override { return inner_.stat(path); }
  Result<std::vector<std::string>> list(std::string_view directory) override { return inner_.list(directory); }
  Status rename(std::string_view from, std::string_view to) override { return inner_.rename(from, to); }
  Status remove(std::string_view path) override { return inner_.remove(path); }
  Status make_directory(std::string_view path) override { return inner_.make_directory(path); }
  Status sync_directory(std::string_view directory) override { return inner_.sync_directory(directory); }
  Status drop_cache(std::string_view path) override { return inner_.drop_cache(path); }
  Result<std::int64_t> free_space() override { return inner_.free_space(); }

 protected:
  FileSystem& inner_;
};

// The operations of the seam by name, for faults, histories and recordings.
enum class FileOp : std::uint8_t {
  create,
  open,
  write,
  read,
  sync,
  close,
  stat,
  list,
  rename,
  remove,
  make_directory,
  sync_directory,
  drop_cache,
  free_space
};
inline constexpr int file_op_count = 14;
std::string_view to_string(FileOp op);
// Operations after which the disk may hold something else than before.
bool changes_disk(FileOp op);

// "a/b/c" -> "a/b"; "a" -> "".
std::string_view parent_path(std::string_view path);
// "a/b/c" -> "c".
std::string_view file_name(std::string_view path);

}  // namespace firedrill
