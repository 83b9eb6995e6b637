#include "engine/ckpt/files.h"

#include <fmt/format.h>

#include <algorithm>

namespace firedrill {

namespace {

Result<Value> read_bounded(FileSystem& files, std::string_view path, std::int64_t size_max, bool to_end) {
  FD_TRY(const auto file, files.open(path));
  FD_TRY(const std::int64_t size, file->size());
  if (size > size_max) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("{} has {} bytes, more than the {} it may have", path, size, size_max)};
  }
  FD_TRY(Value bytes, file->read(0, to_end ? size_max : size));
  if (static_cast<std::int64_t>(bytes.size()) < size) {
    return Error{.code = Code::corrupted, .message = fmt::format("{}: {} of {} bytes read", path, bytes.size(), size)};
  }
  return bytes;
}

}  // namespace

Result<Value> read_whole(FileSystem& files, std::string_view path, std::int64_t size_max) {
  return read_bounded(files, path, size_max, false);
}

Result<Value> read_to_end(FileSystem& files, std::string_view path, std::int64_t size_max) {
  FD_TRY_VOID(files.drop_cache(path));
  return read_bounded(files, path, size_max, true);
}

Status write_synced(FileSystem& files, std::string_view path, const Value& bytes) {
  FD_TRY(const auto file, files.create(path));
  if (bytes.size() > 0) FD_TRY_VOID(file->write(0, bytes));
  FD_TRY_VOID(file->sync());
  return file->close();
}

Status expect_written(FileSystem& files, std::string_view path, const Value& bytes) {
  FD_TRY_VOID(files.drop_cache(path));
  FD_TRY(const Value back, read_whole(files, path, static_cast<std::int64_t>(bytes.size())));
  if (back.text() == bytes.text()) return {};
  return Error{.code = Code::corrupted, .message = fmt::format("{} reads back otherwise than written", path)};
}

Status write_name(FileSystem& files, std::string_view directory, const CheckpointId& id) {
  return create_or_replace(files, path_in(directory, id), Value::copy_of(std::string_view()));
}

Status write_mark(FileSystem& files, std::string_view directory, const CheckpointId& id) {
  FD_TRY_VOID(write_name(files, directory, id));
  return files.sync_directory(directory);
}

Status create_or_replace(FileSystem& files, const std::string& path, const Value& bytes) {
  Status written = write_synced(files, path, bytes);
  if (!written.failed_with(Code::already_exists)) return written;
  return replace(files, path, bytes);
}

Status replace(FileSystem& files, const std::string& path, const Value& bytes) {
  const std::string temporary = path_in(directory::tmp, file_name(path));
  FD_TRY_VOID(removed_or_absent(files.remove(temporary)));  // of an attempt that died before its rename
  FD_TRY_VOID(write_synced(files, temporary, bytes));
  FD_TRY_VOID(expect_written(files, temporary, bytes));
  return files.rename(temporary, path);
}

Status remove_tree(FileSystem& files, const std::string& directory) {
  auto names = files.list(directory);
  if (names.failed_with(Code::not_found)) return {};
  if (!names) return names.error();
  for (const std::string& name : *names) FD_TRY_VOID(removed_or_absent(files.remove(path_in(directory, name))));
  return removed_or_absent(files.remove(directory));
}

Status removed_or_absent(Status removed) {
  if (!removed && removed.failed_with(Code::not_found)) return {};
  return removed;
}

Result<std::vector<std::string>> names_in(FileSystem& files, std::string_view directory) {
  auto names = files.list(directory);
  if (names.failed_with(Code::not_found)) return std::vector<std::string>();
  return names;
}

Status make_directories(FileSystem& files, const std::vector<std::string>& there,
                        const std::vector<std::string_view>& wanted) {
  const auto is_there = [&there](std::string_view name) {
    return std::find(there.begin(), there.end(), name) != there.end();
  };
  bool in_use = is_there(wanted.front());
  if (in_use) {
    FD_TRY(const auto names, names_in(files, wanted.front()));
    in_use = !names.empty();
  }
  std::vector<std::string_view> new_ones;
  for (const std::string_view name : wanted) {
    if (in_use && is_there(name)) continue;
    Status made = files.make_directory(name);
    if (made.failed_with(Code::already_exists) && !in_use) {
      FD_TRY(const auto names, names_in(files, name));
      if (!names.empty()) continue;
      FD_TRY_VOID(removed_or_absent(files.remove(name)));
      made = files.make_directory(name);
    }
    if (!made && !made.failed_with(Code::already_exists)) return made;
    if (made) new_ones.push_back(name);
  }
  Status synced = files.sync_directory("");
  if (!synced && !synced.failed_with(Code::dead)) {
    // Of a root that is in use nobody makes them anew again.
    for (const std::string_view name : new_ones) static_cast<void>(files.remove(name));
  }
  return synced;
}

}  // namespace firedrill
