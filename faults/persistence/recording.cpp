#include "faults/persistence/recording.h"

namespace firedrill::crash {

namespace {

// The call never reached the storage.
bool had_no_effect(const Error& error) {
  return error.code == Code::dead || error.code == Code::fenced || error.code == Code::aborted ||
         error.code == Code::timeout;
}

template <class R>
void record(RankRecorder& rank, Operation operation, const R& result) {
  if (!result.ok()) {
    if (had_no_effect(result.error())) return;
    operation.error = result.error().code;
  }
  rank.record(std::move(operation));
}

Operation operation_on(FileOp op, std::string_view path, InodeId inode = no_inode) {
  Operation operation;
  operation.op = op;
  operation.path = path;
  operation.inode = inode;
  return operation;
}

class RecordingFile final : public ForwardingFile {
 public:
  RecordingFile(std::unique_ptr<File> inner, RankRecorder& rank, std::string_view path, InodeId inode, bool writable)
      : ForwardingFile(std::move(inner)), rank_(rank), path_(path), inode_(inode), writable_(writable) {}

  Status write(std::int64_t offset, const Value& bytes) override {
    Status status = inner_->write(offset, bytes);
    Operation operation = operation_on(FileOp::write, path_, inode_);
    operation.offset = offset;
    operation.bytes = bytes;
    record(rank_, std::move(operation), status);
    return status;
  }
  Status sync() override {
    Status status = inner_->sync();
    record(rank_, operation_on(FileOp::sync, path_, inode_), status);
    return status;
  }
  // Closing what was opened to be read flushes nothing anywhere.
  Status close() override {
    Status status = inner_->close();
    if (writable_) record(rank_, operation_on(FileOp::close, path_, inode_), status);
    return status;
  }

 private:
  RankRecorder& rank_;
  std::string path_;
  InodeId inode_;
  bool writable_;
};

// Makes the call, and records it if it failed by a fault before any recorder below saw it.
template <class Call>
Status record_if_unseen(RankRecorder& rank, Operation operation, Call&& call) {
  const std::uint64_t before = rank.recorded();
  Status status = call();
  if (!status.ok() && status.error().injected && rank.recorded() == before) {
    record(rank, std::move(operation), status);
  }
  return status;
}

class FileOfInjectedErrors final : public ForwardingFile {
 public:
  FileOfInjectedErrors(std::unique_ptr<File> inner, RankRecorder& rank, std::string_view path, bool writable)
      : ForwardingFile(std::move(inner)),
        rank_(rank),
        path_(path),
        inode_(rank.recorder().inode_of(path)),
        writable_(writable) {}

  Status write(std::int64_t offset, const Value& bytes) override {
    Operation operation = operation_on(FileOp::write, path_, inode_);
    operation.offset = offset;
    operation.bytes = bytes;
    return record_if_unseen(rank_, std::move(operation), [&] { return inner_->write(offset, bytes); });
  }
  Status sync() override {
    return record_if_unseen(rank_, operation_on(FileOp::sync, path_, inode_), [&] { return inner_->sync(); });
  }
  Status close() override {
    if (!writable_) return inner_->close();
    return record_if_unseen(rank_, operation_on(FileOp::close, path_, inode_), [&] { return inner_->close(); });
  }

 private:
  RankRecorder& rank_;
  std::string path_;
  InodeId inode_;
  bool writable_;
};

}  // namespace

ProgramId RankRecorder::program() {
  const std::pair key(position_.attempt, task_ ? task_() : 0);
  const std::lock_guard lock(mutex_);
  if (const auto known = programs_.find(key); known != programs_.end()) return known->second;
  const ProgramId program =
      recorder_.program({.attempt = position_.attempt, .rank = position_.rank, .node = node_, .task = key.second});
  programs_.emplace(key, program);
  return program;
}

Result<std::unique_ptr<File>> RecordingFileSystem::create(std::string_view path) {
  Result<std::unique_ptr<File>> file = inner_.create(path);
  record(rank_, operation_on(FileOp::create, path), file);
  if (!file) return file;
  return std::unique_ptr<File>(
      std::make_unique<RecordingFile>(*std::move(file), rank_, path, rank_.recorder().inode_of(path), true));
}

Result<std::unique_ptr<File>> RecordingFileSystem::open(std::string_view path) {
  Result<std::unique_ptr<File>> file = inner_.open(path);
  if (!file) return file;
  const InodeId inode = rank_.recorder().inode_of(path);
  FD_CHECK(inode != no_inode, "{} was opened, but nothing recorded made it", path);
  return std::unique_ptr<File>(std::make_unique<RecordingFile>(*std::move(file), rank_, path, inode, false));
}

Status RecordingFileSystem::rename(std::string_view from, std::string_view to) {
  Status status = inner_.rename(from, to);
  Operation operation = operation_on(FileOp::rename, from);
  operation.second = to;
  record(rank_, std::move(operation), status);
  return status;
}

Status RecordingFileSystem::remove(std::string_view path) {
  Status status = inner_.remove(path);
  record(rank_, operation_on(FileOp::remove, path), status);
  return status;
}

Status RecordingFileSystem::make_directory(std::string_view path) {
  Status status = inner_.make_directory(path);
  record(rank_, operation_on(FileOp::make_directory, path), status);
  return status;
}

Status RecordingFileSystem::sync_directory(std::string_view directory) {
  Status status = inner_.sync_directory(directory);
  record(rank_, operation_on(FileOp::sync_directory, directory), status);
  return status;
}

Result<std::unique_ptr<File>> RecordingInjectedErrors::create(std::string_view path) {
  Result<std::unique_ptr<File>> file = inner_.create(path);
  if (!file) return file;
  return std::unique_ptr<File>(std::make_unique<FileOfInjectedErrors>(*std::move(file), rank_, path, true));
}

Result<std::unique_ptr<File>> RecordingInjectedErrors::open(std::string_view path) {
  Result<std::unique_ptr<File>> file = inner_.open(path);
  if (!file) return file;
  return std::unique_ptr<File>(std::make_unique<FileOfInjectedErrors>(*std::move(file), rank_, path, false));
}

Status RecordingInjectedErrors::sync_directory(std::string_view directory) {
  return record_if_unseen(rank_, operation_on(FileOp::sync_directory, directory),
                          [&] { return inner_.sync_directory(directory); });
}

Status RecordingTransport::send(int peer, Tag tag, const Value& value, Time deadline) {
  // Noted first: the peer may take the message before this call returns. One that was never sent is never taken.
  const Position& position = rank_.position();
  rank_.recorder().send(position.attempt, position.rank, peer, tag, rank_.program());
  return inner_.send(peer, tag, value, deadline);
}

Result<Value> RecordingTransport::recv(int peer, Tag tag, Time deadline) {
  Result<Value> value = inner_.recv(peer, tag, deadline);
  const Position& position = rank_.position();
  if (value) rank_.recorder().take(position.attempt, peer, position.rank, tag, rank_.program());
  return value;
}

Status RecordingHost::spawn(std::string_view name, std::function<void()> task) {
  const Recorder::Stamp before = rank_.recorder().stamp(rank_.program());
  return inner_.spawn(name, [this, before, task = std::move(task)] {
    rank_.recorder().learn(rank_.program(), before);
    task();
  });
}

Status RecordingHost::wait(EventId event, Time deadline) {
  Status status = inner_.wait(event, deadline);
  const std::lock_guard lock(mutex_);
  const auto notified = notified_.find(event);
  if (status.ok() && notified != notified_.end()) rank_.recorder().learn(rank_.program(), notified->second);
  return status;
}

void RecordingHost::notify(EventId event) {
  {
    const std::lock_guard lock(mutex_);
    notified_[event] = rank_.recorder().stamp(rank_.program());
  }
  inner_.notify(event);
}

void RecordingObserver::event(const Event& event) {
  if (event.kind == EventKind::acknowledged || event.kind == EventKind::committed) {
    Operation operation;
    operation.kind = event.kind == EventKind::acknowledged ? OperationKind::acknowledged : OperationKind::committed;
    operation.checkpoint = {.step = event.step, .attempt = event.attempt, .trial = event.a};
    operation.state = event.digest;
    rank_.record(std::move(operation));
  }
  inner_.event(event);
}

}  // namespace firedrill::crash
