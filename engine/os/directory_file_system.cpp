#include "engine/os/directory_file_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "engine/base/text.h"

namespace firedrill {
namespace {

Code code_of(int number) {
  switch (number) {
    case ENOENT: return Code::not_found;
    case EEXIST: return Code::already_exists;
    case ENOSPC:
    case EDQUOT: return Code::no_space;
    default: return Code::io_error;
  }
}

std::string hint_for(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT: return "free space on the disk or raise the quota";
    case EACCES:
    case EPERM:
    case EROFS: return "make the directory writable for this user";
    default: return "";
  }
}

// "write of shards/4-1-1/model-0 failed: No space left on device"
Error failed(FileOp op, std::string_view path, int number) {
  return Error{.code = code_of(number),
               .message = fmt::format("{} of {} failed: {}", to_string(op), path.empty() ? "the root" : path,
                                      strerrordesc_np(number)),
               .hint = hint_for(number)};
}

Error refused(FileOp op, std::string_view path, std::string_view why) {
  return Error{.code = Code::io_error, .message = fmt::format("{} of {} refused: {}", to_string(op), path, why)};
}

// Calls again what a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

Status check_path(FileOp op, std::string_view path) {
  if (path.empty()) return {};
  for (const std::string& part : split(path, '/')) {
    if (part.empty()) return refused(op, path, "a path is relative and has no empty part");
    if (part == "." || part == "..") return refused(op, path, "a path has no \".\" and no \"..\"");
    if (part.find('\0') != std::string::npos) return refused(op, path, "a path has no zero byte");
  }
  return {};
}

Status check_name(FileOp op, std::string_view path) {
  if (path.empty()) return refused(op, "the root", "it always exists and cannot be changed");
  return check_path(op, path);
}

class DirectoryFile final : public File {
 public:
  DirectoryFile(Descriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Status write(std::int64_t offset, const Value& bytes) override {
    FD_CHECK(offset >= 0, "write at {}", offset);
    std::span<const std::byte> rest = bytes.bytes();
    while (!rest.empty()) {
      const ssize_t written =
          uninterrupted([&] { return ::pwrite(descriptor_.number(), rest.data(), rest.size(), offset); });
      if (written < 0) return failed(FileOp::write, path_, errno);
      if (written == 0) return failed(FileOp::write, path_, EIO);
      rest = rest.subspan(static_cast<std::size_t>(written));
      offset += written;
    }
    return {};
  }

  Result<Value> read(std::int64_t offset, std::int64_t size) override {
    FD_CHECK(offset >= 0 && size >= 0, "read of {} bytes at {}", size, offset);
    FD_TRY(const std::int64_t end, this->size());
    // What is asked for may be garbage from a file; memory is taken only for what is there.
    size = std::clamp<std::int64_t>(end - offset, 0, size);
    MutableValue buffer(DType::u8, Shape{size});
    std::int64_t done = 0;
    while (done < size) {
      const ssize_t got = uninterrupted([&] {
        return ::pread(descriptor_.number(), buffer.bytes().data() + done, static_cast<std::size_t>(size - done),
                       offset + done);
      });
      if (got < 0) return failed(FileOp::read, path_, errno);
      if (got == 0) break;  // somebody cut the file
      done += got;
    }
    const Value value = std::move(buffer).freeze();
    return done == size ? value : value.slice(0, done);
  }

  Result<std::int64_t> size() override {
    struct stat info {};
    if (::fstat(descriptor_.number(), &info) != 0) return failed(FileOp::stat, path_, errno);
    return info.st_size;
  }

  Status sync() override {
    if (uninterrupted([&] { return ::fsync(descriptor_.number()); }) != 0) return failed(FileOp::sync, path_, errno);
    return {};
  }

  Status close() override {
    const int number = descriptor_.release();
    // After EINTR the descriptor is closed, too; every other failure tells of an earlier write.
    if (::close(number) != 0 && errno != EINTR) return failed(FileOp::close, path_, errno);
    return {};
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<DirectoryFileSystem>> DirectoryFileSystem::open_root(const std::filesystem::path& root) {
  Descriptor descriptor(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.valid()) return failed(FileOp::open, root.string(), errno);
  return std::unique_ptr<DirectoryFileSystem>(new DirectoryFileSystem(std::move(descriptor)));
}

// Walks part by part and follows no symbolic link, so no path leaves the root.
Result<Descriptor> DirectoryFileSystem::open_directory(FileOp op, std::string_view directory,
                                                       std::string_view path) const {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Descriptor at(uninterrupted([&] { return ::openat(root_.number(), ".", flags); }));
  if (!at.valid()) return failed(op, path, errno);
  if (directory.empty()) return at;
  for (const std::string& part : split(directory, '/')) {
    Descriptor next(uninterrupted([&] { return ::openat(at.number(), part.c_str(), flags); }));
    if (!next.valid()) return failed(op, path, errno);
    at = std::move(next);
  }
  return at;
}

Result<Descriptor> DirectoryFileSystem::open_file(FileOp op, std::string_view path, int access) const {
  FD_TRY_VOID(check_name(op, path));
  FD_TRY(const Descriptor parent, open_directory(op, parent_path(path), path));
  const std::string name(file_name(path));
  // O_NONBLOCK: to open a pipe that somebody left there must not wait for its other end.
  Descriptor file(uninterrupted(
      [&] { return ::openat(parent.number(), name.c_str(), access | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); }));
  if (!file.valid()) return failed(op, path, errno);
  struct stat info {};
  if (::fstat(file.number(), &info) != 0) return failed(op, path, errno);
  if (!S_ISREG(info.st_mode)) return refused(op, path, "it is not a file");
  return file;
}

Result<std::unique_ptr<File>> DirectoryFileSystem::create(std::string_view path) {
  FD_TRY_VOID(check_name(FileOp::create, path));
  FD_TRY(const Descriptor parent, open_directory(FileOp::create, parent_path(path), path));
  const std::string name(file_name(path));
  constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Descriptor file(uninterrupted([&] { return ::openat(parent.number(), name.c_str(), flags, 0644); }));
  if (!file.valid()) return failed(FileOp::create, path, errno);
  return std::unique_ptr<File>(std::make_unique<DirectoryFile>(std::move(file), std::string(path)));
}

Result<std::unique_ptr<File>> DirectoryFileSystem::open(std::string_view path) {
  FD_TRY(Descriptor file, open_file(FileOp::open, path, O_RDONLY));
  return std::unique_ptr<File>(std::make_unique<DirectoryFile>(std::move(file), std::string(path)));
}

Result<FileInfo> DirectoryFileSystem::stat(std::string_view path) {
  if (path.empty()) return FileInfo{.kind = FileKind::directory};
  FD_TRY_VOID(check_path(FileOp::stat, path));
  FD_TRY(const Descriptor parent, open_directory(FileOp::stat, parent_path(path), path));
  const std::string name(file_name(path));
  struct stat info {};
  if (::fstatat(parent.number(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return failed(FileOp::stat, path, errno);
  }
  const Time modified = std::chrono::seconds(info.st_mtim.tv_sec) + Time(info.st_mtim.tv_nsec);
  if (S_ISDIR(info.st_mode)) return FileInfo{.kind = FileKind::directory, .modified = modified};
  if (!S_ISREG(info.st_mode)) return refused(FileOp::stat, path, "it is neither a file nor a directory");
  return FileInfo{.kind = FileKind::file, .size = info.st_size, .modified = modified};
}

Result<std::vector<std::string>> DirectoryFileSystem::list(std::string_view directory) {
  FD_TRY_VOID(check_path(FileOp::list, directory));
  FD_TRY(Descriptor at, open_directory(FileOp::list, directory, directory));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(at.number()), ::closedir);
  if (!stream) return failed(FileOp::list, directory, errno);
  at.release();  // the stream closes it
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (!entry) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return failed(FileOp::list, directory, errno);
  std::sort(names.begin(), names.end());
  return names;
}

Status DirectoryFileSystem::rename(std::string_view from, std::string_view to) {
  FD_TRY_VOID(check_name(FileOp::rename, from));
  FD_TRY_VOID(check_name(FileOp::rename, to));
  FD_TRY(const Descriptor from_parent, open_directory(FileOp::rename, parent_path(from), from));
  FD_TRY(const Descriptor to_parent, open_directory(FileOp::rename, parent_path(to), to));
  const std::string from_name(file_name(from));
  const std::string to_name(file_name(to));
  if (::renameat(from_parent.number(), from_name.c_str(), to_parent.number(), to_name.c_str()) != 0) {
    return failed(FileOp::rename, fmt::format("{} to {}", from, to), errno);
  }
  return {};
}

Status DirectoryFileSystem::remove(std::string_view path) {
  FD_TRY_VOID(check_name(FileOp::remove, path));
  FD_TRY(const Descriptor parent, open_directory(FileOp::remove, parent_path(path), path));
  const std::string name(file_name(path));
  if (::unlinkat(parent.number(), name.c_str(), 0) == 0) return {};
  if (errno == EISDIR && ::unlinkat(parent.number(), name.c_str(), AT_REMOVEDIR) == 0) return {};
  // A directory that is not empty gives EEXIST on some file systems; the seam has one code for it.
  return failed(FileOp::remove, path, errno == EEXIST ? ENOTEMPTY : errno);
}

Status DirectoryFileSystem::make_directory(std::string_view path) {
  FD_TRY_VOID(check_path(FileOp::make_directory, path));
  if (path.empty()) return failed(FileOp::make_directory, path, EEXIST);
  FD_TRY(const Descriptor parent, open_directory(FileOp::make_directory, parent_path(path), path));
  const std::string name(file_name(path));
  if (::mkdirat(parent.number(), name.c_str(), 0755) != 0) return failed(FileOp::make_directory, path, errno);
  return {};
}

Status DirectoryFileSystem::sync_directory(std::string_view directory) {
  FD_TRY_VOID(check_path(FileOp::sync_directory, directory));
  FD_TRY(const Descriptor at, open_directory(FileOp::sync_directory, directory, directory));
  if (uninterrupted([&] { return ::fsync(at.number()); }) != 0) return failed(FileOp::sync_directory, directory, errno);
  return {};
}

Status DirectoryFileSystem::drop_cache(std::string_view path) {
  FD_TRY(const Descriptor file, open_file(FileOp::drop_cache, path, O_RDONLY));
  const int number = ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);
  if (number != 0) return failed(FileOp::drop_cache, path, number);
  return {};
}

Result<std::int64_t> DirectoryFileSystem::free_space() {
  struct statvfs info {};
  if (uninterrupted([&] { return ::fstatvfs(root_.number(), &info); }) != 0) {
    return failed(FileOp::free_space, "", errno);
  }
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

Status DirectoryFileSystem::overwrite(std::string_view path, std::int64_t offset, const Value& bytes) {
  FD_TRY(Descriptor file, open_file(FileOp::write, path, O_WRONLY));
  return DirectoryFile(std::move(file), std::string(path)).write(offset, bytes);
}

}  // namespace firedrill
