#include "faults/faulty_file_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace firedrill {

class FaultyFile final : public ForwardingFile {
 public:
  FaultyFile(std::unique_ptr<File> inner, std::string_view path, FaultyFileSystem& files)
      : ForwardingFile(std::move(inner)), path_(path), files_(files), injector_(files.injector_) {}
  Status write(std::int64_t offset, const Value& bytes) override {
    if (!injector_.watches(SeamOp::file)) return inner_->write(offset, bytes);
    FileCall call{.offset = offset, .bytes = bytes, .written_before = files_.written_};
    Status written = injector_.around(site(FileOp::write, call),
                                      [&] { return call.skipped ? Status() : inner_->write(call.offset, call.bytes); });
    files_.written_ = path_;
    return written;
  }
  Result<Value> read(std::int64_t offset, std::int64_t size) override {
    FileCall call;
    return injector_.around(site(FileOp::read, call), [&] { return inner_->read(offset, size); });
  }
  // A stat of a file that is open.
  Result<std::int64_t> size() override {
    FileCall call;
    Result<std::int64_t> size = injector_.around(site(FileOp::stat, call), [&] { return inner_->size(); });
    if (size && call.stale) return std::int64_t{0};
    return size;
  }
  Status sync() override {
    FileCall call;
    return injector_.around(site(FileOp::sync, call), [&] { return call.skipped ? Status() : inner_->sync(); });
  }
  Status close() override {
    FileCall call;
    return injector_.around(site(FileOp::close, call), [&] { return inner_->close(); });
  }

 private:
  CallSite site(FileOp op, FileCall& call) const {
    return {.op = SeamOp::file, .file_op = op, .path = path_, .file = &call};
  }

  std::string path_;
  FaultyFileSystem& files_;
  Injector& injector_;
};

namespace {

CallSite site(FileOp op, std::string_view path, FileCall& call) {
  return {.op = SeamOp::file, .file_op = op, .path = path, .file = &call};
}

// "10-1-1" comes after "9-1-1".
bool numbers_before(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (!a.empty() && !b.empty()) {
    const std::string_view run_a = a.substr(0, std::find_if_not(a.begin(), a.end(), digit) - a.begin());
    const std::string_view run_b = b.substr(0, std::find_if_not(b.begin(), b.end(), digit) - b.begin());
    if (run_a.empty() || run_b.empty()) {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    if (run_a != run_b) return run_a.size() != run_b.size() ? run_a.size() < run_b.size() : run_a < run_b;
    a.remove_prefix(run_a.size());
    b.remove_prefix(run_b.size());
  }
  return a.size() < b.size();
}

std::string joined(std::string_view directory, std::string_view name) {
  return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

}  // namespace

Result<std::unique_ptr<File>> FaultyFileSystem::with_faults(Result<std::unique_ptr<File>> file, std::string_view path) {
  // A fault that is used up never comes back, so a file opened when none is left needs no decorator.
  if (!file || !injector_.watches(SeamOp::file)) return file;
  return std::unique_ptr<File>(std::make_unique<FaultyFile>(*std::move(file), path, *this));
}

Status FaultyFileSystem::look(std::string_view path) {
  const auto late = std::find_if(late_.begin(), late_.end(), [path](const Late& one) { return one.path == path; });
  if (late == late_.end()) return {};
  --late->looks;
  if (late->looks < 0 && injector_.effects().now() >= late->until) {
    late_.erase(late);
    return {};
  }
  return Error{.code = Code::not_found,
               .message = fmt::format("no '{}'", path),
               .hint = "a planned fault hides it",
               .injected = true};
}

Result<std::unique_ptr<File>> FaultyFileSystem::create(std::string_view path) {
  FileCall call;
  return with_faults(injector_.around(site(FileOp::create, path, call), [&] { return inner_.create(path); }), path);
}

Result<std::unique_ptr<File>> FaultyFileSystem::open(std::string_view path) {
  FileCall call;
  auto file = injector_.around(site(FileOp::open, path, call), [&] { return inner_.open(path); });
  if (call.hidden_looks > 0) hide(path, call);
  if (file && !late_.empty()) FD_TRY_VOID(look(path));
  return with_faults(std::move(file), path);
}

Result<FileInfo> FaultyFileSystem::stat(std::string_view path) {
  FileCall call;
  auto info = injector_.around(site(FileOp::stat, path, call), [&] { return inner_.stat(path); });
  if (call.hidden_looks > 0) hide(path, call);
  if (info && !late_.empty()) FD_TRY_VOID(look(path));
  if (info && call.stale) info->size = 0;
  return info;
}

Result<std::vector<std::string>> FaultyFileSystem::list(std::string_view directory) {
  FileCall call;
  auto names = injector_.around(site(FileOp::list, directory, call), [&] { return inner_.list(directory); });
  if (!names || (!call.stale && call.hidden_looks == 0 && late_.empty())) return names;
  if (const auto newest = std::max_element(names->begin(), names->end(), numbers_before); newest != names->end()) {
    if (call.hidden_looks > 0) hide(joined(directory, *newest), call);
    if (call.stale) names->erase(newest);
  }
  if (!late_.empty()) {
    std::erase_if(*names, [&](const std::string& name) { return !look(joined(directory, name)); });
  }
  return names;
}

Status FaultyFileSystem::rename(std::string_view from, std::string_view to) {
  FileCall file;
  const CallSite call{.op = SeamOp::file, .file_op = FileOp::rename, .path = from, .second_path = to, .file = &file};
  return injector_.around(call, [&] { return inner_.rename(from, to); });
}

Status FaultyFileSystem::remove(std::string_view path) {
  FileCall call;
  return injector_.around(site(FileOp::remove, path, call), [&] { return inner_.remove(path); });
}

Status FaultyFileSystem::make_directory(std::string_view path) {
  FileCall call;
  return injector_.around(site(FileOp::make_directory, path, call), [&] { return inner_.make_directory(path); });
}

Status FaultyFileSystem::sync_directory(std::string_view directory) {
  FileCall call;
  return injector_.around(site(FileOp::sync_directory, directory, call),
                          [&] { return call.skipped ? Status() : inner_.sync_directory(directory); });
}

Status FaultyFileSystem::drop_cache(std::string_view path) {
  FileCall call;
  return injector_.around(site(FileOp::drop_cache, path, call), [&] { return inner_.drop_cache(path); });
}

Result<std::int64_t> FaultyFileSystem::free_space() {
  FileCall call;
  return injector_.around(site(FileOp::free_space, "", call), [&] { return inner_.free_space(); });
}

}  // namespace firedrill
