#include "harness/mutants/steps.h"

#include "engine/ckpt/files.h"
#include "engine/ckpt/id.h"

namespace firedrill {
namespace {

constexpr std::int64_t text_size_max = 4096;

}  // namespace

Status write_unsynced(FileSystem& files, std::string_view path, const Value& bytes) {
  FD_TRY(const std::unique_ptr<File> file, files.create(path));
  FD_TRY_VOID(file->write(0, bytes));
  return file->close();
}

Status write_and_rename(FileSystem& files, std::string_view temporary, std::string_view path, const Value& bytes) {
  FD_TRY_VOID(write_unsynced(files, temporary, bytes));
  return files.rename(temporary, path);
}

Status write_over(FileSystem& files, std::string_view path, const Value& bytes) {
  FD_TRY_VOID(removed_or_absent(files.remove(path)));
  return write_unsynced(files, path, bytes);
}

Result<std::string> text_of(FileSystem& files, std::string_view path) {
  const Result<Value> bytes = read_whole(files, path, text_size_max);
  if (bytes.failed_with(Code::not_found)) return std::string();
  if (!bytes) return bytes.error();
  return std::string(bytes->text());
}

Status delete_checkpoints(FileSystem& files, const std::vector<CheckpointId>& ids) {
  for (const CheckpointId& id : ids) {
    FD_TRY_VOID(removed_or_absent(files.remove(path_in(directory::manifests, id))));
    FD_TRY_VOID(files.sync_directory(directory::manifests));
    FD_TRY_VOID(removed_or_absent(files.remove(path_in(directory::validated, id))));
    FD_TRY_VOID(remove_tree(files, path_in(directory::shards, id)));
  }
  return {};
}

void look_no_further_than(std::optional<CheckpointId> newest, Survey& survey) {
  for (const CheckpointId& id : survey.manifests) {
    if (!newest || *newest < id) survey.tombstones.push_back(id);
  }
}

void change_number(StateView& state, std::string_view tensor, const std::function<std::int64_t(std::int64_t)>& change) {
  for (StateGroup& group : state) {
    for (const TensorSlot& slot : group.tensors) {
      if (slot.name != tensor) continue;
      MutableValue numbers{Value(group.value)};
      std::int64_t& number = numbers.as<std::int64_t>()[static_cast<std::size_t>(slot.offset)];
      number = change(number);
      group.value = std::move(numbers).freeze();
    }
  }
}

}  // namespace firedrill
