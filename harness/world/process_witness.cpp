#include "harness/world/process_witness.h"

namespace firedrill {
namespace {

class WitnessFile final : public ForwardingFile {
 public:
  WitnessFile(std::unique_ptr<File> inner, WitnessFileSystem& files, std::string_view path)
      : ForwardingFile(std::move(inner)), files_(files), path_(path) {}

  Status write(std::int64_t offset, const Value& bytes) override {
    FD_TRY_VOID(inner_->write(offset, bytes));
    files_.tell(FileOp::write, path_, static_cast<std::int64_t>(bytes.size()));
    return {};
  }
  Status sync() override {
    FD_TRY_VOID(inner_->sync());
    files_.tell(FileOp::sync, path_);
    return {};
  }

 private:
  WitnessFileSystem& files_;
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<File>> WitnessFileSystem::create(std::string_view path) {
  FD_TRY(std::unique_ptr<File> file, inner_.create(path));
  tell(FileOp::create, path);
  return std::unique_ptr<File>(std::make_unique<WitnessFile>(std::move(file), *this, path));
}

Status WitnessFileSystem::rename(std::string_view from, std::string_view to) {
  return told(inner_.rename(from, to), FileOp::rename, from, to);
}

Status WitnessFileSystem::remove(std::string_view path) { return told(inner_.remove(path), FileOp::remove, path); }

Status WitnessFileSystem::make_directory(std::string_view path) {
  return told(inner_.make_directory(path), FileOp::make_directory, path);
}

Status WitnessFileSystem::sync_directory(std::string_view directory) {
  return told(inner_.sync_directory(directory), FileOp::sync_directory, directory);
}

void WitnessFileSystem::tell(FileOp op, std::string_view path, std::int64_t bytes, std::string_view second_path) {
  pulse_.beat(position_);
  emit(observer_, position_,
       Event{.kind = EventKind::disk_changed,
             .a = static_cast<std::int64_t>(op),
             .b = bytes,
             .name = observer_.intern(path),
             .detail = observer_.intern(second_path)});
}

Status WitnessFileSystem::told(Status status, FileOp op, std::string_view path, std::string_view second_path) {
  if (status) tell(op, path, 0, second_path);
  return status;
}

}  // namespace firedrill
