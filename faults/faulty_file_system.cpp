#include "faults/faulty_file_system.h"

#include <utility>

namespace firedrill {
namespace {

class FaultyFile final : public ForwardingFile {
 public:
  FaultyFile(std::unique_ptr<File> inner, std::string_view path, Injector& injector)
      : ForwardingFile(std::move(inner)), path_(path), injector_(injector) {}
  Status write(std::int64_t offset, const Value& bytes) override {
    return injector_.around(site(FileOp::write), [&] { return inner_->write(offset, bytes); });
  }
  Result<Value> read(std::int64_t offset, std::int64_t size) override {
    return injector_.around(site(FileOp::read), [&] { return inner_->read(offset, size); });
  }
  // A stat of a file that is open.
  Result<std::int64_t> size() override {
    return injector_.around(site(FileOp::stat), [&] { return inner_->size(); });
  }
  Status sync() override {
    return injector_.around(site(FileOp::sync), [&] { return inner_->sync(); });
  }
  Status close() override {
    return injector_.around(site(FileOp::close), [&] { return inner_->close(); });
  }

 private:
  CallSite site(FileOp op) const { return {.op = SeamOp::file, .file_op = op, .path = path_}; }

  std::string path_;
  Injector& injector_;
};

CallSite site(FileOp op, std::string_view path) { return {.op = SeamOp::file, .file_op = op, .path = path}; }

}  // namespace

Result<std::unique_ptr<File>> FaultyFileSystem::with_faults(Result<std::unique_ptr<File>> file, std::string_view path) {
  // A fault that is used up never comes back, so a file opened when none is left needs no decorator.
  if (!file || !injector_.watches(SeamOp::file)) return file;
  return std::unique_ptr<File>(std::make_unique<FaultyFile>(*std::move(file), path, injector_));
}

Result<std::unique_ptr<File>> FaultyFileSystem::create(std::string_view path) {
  return with_faults(injector_.around(site(FileOp::create, path), [&] { return inner_.create(path); }), path);
}

Result<std::unique_ptr<File>> FaultyFileSystem::open(std::string_view path) {
  return with_faults(injector_.around(site(FileOp::open, path), [&] { return inner_.open(path); }), path);
}

Result<FileInfo> FaultyFileSystem::stat(std::string_view path) {
  return injector_.around(site(FileOp::stat, path), [&] { return inner_.stat(path); });
}

Result<std::vector<std::string>> FaultyFileSystem::list(std::string_view directory) {
  return injector_.around(site(FileOp::list, directory), [&] { return inner_.list(directory); });
}

Status FaultyFileSystem::rename(std::string_view from, std::string_view to) {
  const CallSite call{.op = SeamOp::file, .file_op = FileOp::rename, .path = from, .second_path = to};
  return injector_.around(call, [&] { return inner_.rename(from, to); });
}

Status FaultyFileSystem::remove(std::string_view path) {
  return injector_.around(site(FileOp::remove, path), [&] { return inner_.remove(path); });
}

Status FaultyFileSystem::make_directory(std::string_view path) {
  return injector_.around(site(FileOp::make_directory, path), [&] { return inner_.make_directory(path); });
}

Status FaultyFileSystem::sync_directory(std::string_view directory) {
  return injector_.around(site(FileOp::sync_directory, directory), [&] { return inner_.sync_directory(directory); });
}

Status FaultyFileSystem::drop_cache(std::string_view path) {
  return injector_.around(site(FileOp::drop_cache, path), [&] { return inner_.drop_cache(path); });
}

Result<std::int64_t> FaultyFileSystem::free_space() {
  return injector_.around(site(FileOp::free_space, ""), [&] { return inner_.free_space(); });
}

}  // namespace firedrill
