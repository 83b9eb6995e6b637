// The seam over a Disk: files and file systems that add nothing but the gate and the issuer.
#include <algorithm>
#include <utility>

#include "engine/sim/disk.h"

namespace firedrill::sim {
namespace {

class DiskFile final : public File {
 public:
  DiskFile(Disk& disk, DiskGate* gate, const Issuer& issuer, const Disk::OpenFile& file, bool writable)
      : disk_(disk),
        gate_(gate),
        issuer_(issuer),
        file_(file.inode),
        path_(file.path),
        generation_(disk.generation()),
        writable_(writable) {}
  ~DiskFile() override { let_go(); }
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  Status write(std::int64_t offset, const Value& bytes) override {
    FD_TRY_VOID(pass(FileOp::write, static_cast<std::int64_t>(bytes.size())));
    if (!writable_) return refused("was opened for reading only");
    return disk_.write(file_, offset, bytes, path_, issuer_);
  }
  Result<Value> read(std::int64_t offset, std::int64_t size) override {
    const std::int64_t there = open_ ? std::max<std::int64_t>(0, disk_.size(file_) - offset) : 0;
    FD_TRY_VOID(pass(FileOp::read, std::min(size, there)));
    return disk_.read(file_, offset, size);
  }
  Result<std::int64_t> size() override {
    FD_TRY_VOID(pass(FileOp::stat, 0));
    return disk_.size(file_);
  }
  Status sync() override {
    FD_TRY_VOID(pass(FileOp::sync, 0));
    disk_.sync(file_, path_, issuer_);
    return {};
  }
  Status close() override {
    FD_TRY_VOID(pass(FileOp::close, 0));
    let_go();
    return {};
  }

 private:
  Error refused(std::string_view why) const {
    return {.code = Code::io_error, .message = std::string(path_) + " " + std::string(why)};
  }
  Status pass(FileOp op, std::int64_t bytes) {
    if (gate_) FD_TRY_VOID(gate_->pass(op, bytes));
    if (generation_ != disk_.generation()) {
      return Error{.code = Code::io_error, .message = "the file was opened before the disk was reset"};
    }
    if (!open_) return refused("is closed");
    return {};
  }
  void let_go() {
    if (open_ && generation_ == disk_.generation()) disk_.release(file_);
    open_ = false;
  }

  Disk& disk_;
  DiskGate* gate_;
  Issuer issuer_;
  Disk::InodeId file_;
  std::string_view path_;
  std::uint64_t generation_;
  bool writable_;
  bool open_ = true;
};

class DiskFileSystem final : public FileSystem {
 public:
  DiskFileSystem(Disk& disk, const Issuer& issuer, DiskGate* gate) : disk_(disk), issuer_(issuer), gate_(gate) {}

  Result<std::unique_ptr<File>> create(std::string_view path) override {
    FD_TRY_VOID(pass(FileOp::create));
    FD_TRY(const Disk::OpenFile file, disk_.create(path, issuer_));
    return handle(file, true);
  }
  Result<std::unique_ptr<File>> open(std::string_view path) override {
    FD_TRY_VOID(pass(FileOp::open));
    FD_TRY(const Disk::OpenFile file, disk_.open(path));
    return handle(file, false);
  }
  Result<FileInfo> stat(std::string_view path) override {
    FD_TRY_VOID(pass(FileOp::stat));
    return disk_.stat(path);
  }
  Result<std::vector<std::string>> list(std::string_view directory) override {
    FD_TRY_VOID(pass(FileOp::list));
    return disk_.list(directory);
  }
  Status rename(std::string_view from, std::string_view to) override {
    FD_TRY_VOID(pass(FileOp::rename));
    return disk_.rename(from, to, issuer_);
  }
  Status remove(std::string_view path) override {
    FD_TRY_VOID(pass(FileOp::remove));
    return disk_.remove(path, issuer_);
  }
  Status make_directory(std::string_view path) override {
    FD_TRY_VOID(pass(FileOp::make_directory));
    return disk_.make_directory(path, issuer_);
  }
  Status sync_directory(std::string_view directory) override {
    FD_TRY_VOID(pass(FileOp::sync_directory));
    return disk_.sync_directory(directory, issuer_);
  }
  Status drop_cache(std::string_view path) override {
    FD_TRY_VOID(pass(FileOp::drop_cache));
    FD_TRY_VOID(disk_.stat(path));
    return {};
  }
  Result<std::int64_t> free_space() override {
    FD_TRY_VOID(pass(FileOp::free_space));
    return disk_.free_space();
  }

 private:
  Status pass(FileOp op) { return gate_ ? gate_->pass(op, 0) : Status(); }
  std::unique_ptr<File> handle(const Disk::OpenFile& file, bool writable) {
    return std::make_unique<DiskFile>(disk_, gate_, issuer_, file, writable);
  }

  Disk& disk_;
  Issuer issuer_;
  DiskGate* gate_;
};

}  // namespace

std::unique_ptr<FileSystem> Disk::files(const Issuer& issuer, DiskGate* gate) {
  return std::make_unique<DiskFileSystem>(*this, issuer, gate);
}

}  // namespace firedrill::sim
