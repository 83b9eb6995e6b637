#include "engine/rocks/seam_env.h"

#include <rocksdb/system_clock.h>  // allowed: to answer with a clock that stands still
#include <rocksdb/table.h>

#include <algorithm>

#include "engine/base/check.h"

namespace firedrill {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr std::size_t append_buffer_max = std::size_t{4} << 20;

std::string name_in(const std::string& path) { return std::string(file_name(path)); }

IOStatus copy_out(std::string_view bytes, std::uint64_t offset, std::size_t size, Slice* result, char* scratch) {
  const std::string_view part = offset < bytes.size() ? bytes.substr(offset, size) : std::string_view();
  std::copy(part.begin(), part.end(), scratch);
  *result = Slice(scratch, part.size());
  return IOStatus::OK();
}

class Reader {
 public:
  Reader(StoreFiles& files, std::string name) : files_(files), name_(std::move(name)) {}
  IOStatus read(std::uint64_t offset, std::size_t size, Slice* result, char* scratch) const {
    const auto entry = files_.entries.find(name_);
    if (entry == files_.entries.end()) return IOStatus::PathNotFound(name_);
    if (entry->second.bytes) return copy_out(entry->second.bytes.text(), offset, size, result, scratch);
    auto file = files_.seam->open(files_.path(name_));
    if (!file) return files_.fail(file.error());
    auto bytes = (*file)->read(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(size));
    if (!bytes) return files_.fail(bytes.error());
    return copy_out(bytes->text(), 0, size, result, scratch);
  }

 private:
  StoreFiles& files_;
  std::string name_;
};

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  explicit SequentialFile(Reader reader) : reader_(std::move(reader)) {}
  IOStatus Read(std::size_t n, const IOOptions&, Slice* result, char* scratch, IODebugContext*) override {
    const IOStatus read = reader_.read(offset_, n, result, scratch);
    if (read.ok()) offset_ += result->size();
    return read;
  }
  IOStatus Skip(std::uint64_t n) override {
    offset_ += n;
    return IOStatus::OK();
  }

 private:
  Reader reader_;
  std::uint64_t offset_ = 0;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccessFile(Reader reader) : reader_(std::move(reader)) {}
  IOStatus Read(std::uint64_t offset, std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    return reader_.read(offset, n, result, scratch);
  }

 private:
  Reader reader_;
};

class WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(StoreFiles& files, std::string name, std::unique_ptr<File> file)
      : files_(files), name_(std::move(name)), file_(std::move(file)) {}

  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    buffer_.append(data.data(), data.size());
    return buffer_.size() < append_buffer_max ? IOStatus::OK() : drain();
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    if (!files_.seam || !file_) return IOStatus::NotSupported("given up");
    IOStatus done = drain();
    if (done.ok()) done = files_.status(file_->sync());
    if (done.ok()) done = read_back();
    return done;
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    if (!file_) return IOStatus::OK();
    if (!files_.seam) {  // the store is given up, and perhaps its rank with it: nothing is reported any more
      file_.reset();
      return IOStatus::OK();
    }
    const IOStatus drained = drain();
    const IOStatus closed = files_.status(file_->close());
    file_.reset();
    return drained.ok() ? closed : drained;
  }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    return static_cast<std::uint64_t>(written_) + buffer_.size();
  }

 private:
  // A disk may lose or change what it was given without an error. The next batch would make that a hole in the log.
  IOStatus read_back() {
    if (unverified_.empty()) return IOStatus::OK();
    const std::string path = files_.path(name_);
    const std::int64_t begin = written_ - static_cast<std::int64_t>(unverified_.size());
    if (const Status dropped = files_.seam->drop_cache(path); !dropped) return files_.fail(dropped.error());
    auto file = files_.seam->open(path);
    if (!file) return files_.fail(file.error());
    auto bytes = (*file)->read(begin, static_cast<std::int64_t>(unverified_.size()));
    if (!bytes) return files_.fail(bytes.error());
    if (bytes->text() != unverified_) {
      return files_.fail({.code = Code::corrupted, .message = path + " reads back otherwise than written"});
    }
    unverified_.clear();
    files_.durable[name_] = written_;
    return IOStatus::OK();
  }

  IOStatus drain() {
    if (buffer_.empty() || !files_.seam || !file_) return IOStatus::OK();
    const Value bytes = Value::copy_of(std::string_view(buffer_));
    unverified_ += buffer_;
    buffer_.clear();
    const IOStatus written = files_.status(file_->write(written_, bytes));
    if (!written.ok()) return written;
    written_ += static_cast<std::int64_t>(bytes.size());
    if (const auto entry = files_.entries.find(name_); entry != files_.entries.end()) entry->second.size = written_;
    return IOStatus::OK();
  }

  StoreFiles& files_;
  std::string name_;
  std::unique_ptr<File> file_;
  std::string buffer_;
  std::string unverified_;  // written, and not yet read back
  std::int64_t written_ = 0;
};

class Directory final : public rocksdb::FSDirectory {
 public:
  explicit Directory(StoreFiles& files) : files_(files) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    if (!files_.seam) return IOStatus::NotSupported("only for reading");
    return files_.status(files_.seam->sync_directory(files_.directory));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  StoreFiles& files_;
};

// Nothing that the listing kept back is ever removed: it may be somebody's records.
Error unlisted(const Error& error, const std::string& path) {
  return {.code = Code::unavailable,
          .message = path + " is there, and the listing did not say so",
          .retryable = true,
          .injected = error.injected};
}

// Its writer is alone by the claim of the attempt; the seam has no locks.
class NoLock final : public rocksdb::FileLock {};

IOStatus read_only(std::string_view name) {
  return IOStatus::NotSupported("only for reading", Slice(name.data(), name.size()));
}

class SeamFileSystem final : public rocksdb::FileSystem {
 public:
  explicit SeamFileSystem(StoreFiles& files) : files_(files) {}
  const char* Name() const override { return "firedrill.SeamFileSystem"; }

  IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext*) override {
    if (!has(path)) return IOStatus::PathNotFound(path);
    *result = std::make_unique<SequentialFile>(Reader(files_, name_in(path)));
    return IOStatus::OK();
  }
  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext*) override {
    if (!has(path)) return IOStatus::PathNotFound(path);
    *result = std::make_unique<RandomAccessFile>(Reader(files_, name_in(path)));
    return IOStatus::OK();
  }
  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext*) override {
    const std::string name = name_in(path);
    // Its own settings as a text, which nothing here reads: they are always given.
    if (!files_.seam || name.starts_with("OPTIONS")) return read_only(name);
    auto file = files_.seam->create(files_.path(name));
    if (file.failed_with(Code::already_exists)) {  // left over by an attempt that died: RocksDB starts it anew
      if (name.ends_with(".log") || !has(path)) return files_.fail(unlisted(file.error(), files_.path(name)));
      if (const Status removed = files_.seam->remove(files_.path(name)); !removed) return files_.fail(removed.error());
      file = files_.seam->create(files_.path(name));
    }
    if (!file) return files_.fail(file.error());
    files_.entries[name] = {};
    files_.durable.erase(name);
    *result = std::make_unique<WritableFile>(files_, name, *std::move(file));
    return IOStatus::OK();
  }
  IOStatus NewDirectory(const std::string&, const IOOptions&, std::unique_ptr<rocksdb::FSDirectory>* result,
                        IODebugContext*) override {
    *result = std::make_unique<Directory>(files_);
    return IOStatus::OK();
  }
  IOStatus FileExists(const std::string& path, const IOOptions&, IODebugContext*) override {
    return has(path) || path == files_.directory ? IOStatus::OK() : IOStatus::NotFound(path);
  }
  IOStatus GetChildren(const std::string&, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    result->clear();
    for (const auto& [name, entry] : files_.entries) result->push_back(name);
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) override {
    const std::string name = name_in(path);
    if (!files_.seam) return read_only(name);
    if (!has(path)) return IOStatus::PathNotFound(path);
    const Status removed = files_.seam->remove(files_.path(name));
    if (!removed && !removed.failed_with(Code::not_found)) return files_.fail(removed.error());
    files_.entries.erase(name);
    return IOStatus::OK();
  }
  IOStatus CreateDir(const std::string&, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus CreateDirIfMissing(const std::string&, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) override { return read_only(path); }
  IOStatus GetFileSize(const std::string& path, const IOOptions&, std::uint64_t* size, IODebugContext*) override {
    const auto entry = files_.entries.find(file_name(path));
    if (entry == files_.entries.end()) return IOStatus::PathNotFound(path);
    *size = static_cast<std::uint64_t>(entry->second.size);
    return IOStatus::OK();
  }
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, std::uint64_t* time,
                                   IODebugContext*) override {
    *time = 0;
    return IOStatus::OK();
  }
  // RocksDB syncs the directory once, behind the rename of CURRENT: without a sync before it a crash could keep the new
  // CURRENT and lose the name of what it points to.
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) override {
    if (!files_.seam) return read_only(from);
    const std::string source = name_in(from);
    const std::string target = name_in(to);
    if (target == "CURRENT") {
      if (const Status synced = files_.seam->sync_directory(files_.directory); !synced) {
        return files_.fail(synced.error());
      }
    }
    if (const Status renamed = files_.seam->rename(files_.path(source), files_.path(target)); !renamed) {
      return files_.fail(renamed.error());
    }
    files_.entries[target] = files_.entries[source];
    files_.entries.erase(source);
    return IOStatus::OK();
  }
  IOStatus LockFile(const std::string&, const IOOptions&, rocksdb::FileLock** lock, IODebugContext*) override {
    *lock = new NoLock();
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    delete lock;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string*, IODebugContext*) override { return read_only("tests"); }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* absolute, IODebugContext*) override {
    *absolute = path;
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* is, IODebugContext*) override {
    *is = path == files_.directory;
    return IOStatus::OK();
  }

 private:
  bool has(const std::string& path) const { return files_.entries.contains(file_name(path)); }

  StoreFiles& files_;
};

// Time stands still: nothing here is decided by it, and what RocksDB writes of it is the same every time.
class StoppedClock final : public rocksdb::SystemClock {
 public:
  const char* Name() const override { return "firedrill.StoppedClock"; }
  std::uint64_t NowMicros() override { return seconds * 1'000'000; }
  void SleepForMicroseconds(int) override {}
  rocksdb::Status GetCurrentTime(std::int64_t* unix_time) override {
    *unix_time = seconds;
    return rocksdb::Status::OK();
  }
  std::string TimeToString(std::uint64_t) override { return "now"; }

 private:
  static constexpr std::int64_t seconds = 1'000'000'000;
};

class NoLogger final : public rocksdb::Logger {
 public:
  NoLogger() : Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// RocksDB was about to do something on another thread: a setting of ours is wrong. Nothing may be thrown through it, so
// the failed check ends the process, and says so.
[[noreturn]] void refuse_thread() noexcept {
  fail_check(__FILE__, __LINE__, "no threads", "the record store was asked for a thread");
}

class SeamEnv final : public rocksdb::EnvWrapper {
 public:
  explicit SeamEnv(StoreFiles& files) : EnvWrapper(rocksdb::NewCompositeEnv(std::make_shared<SeamFileSystem>(files))) {
    system_clock_ = std::make_shared<StoppedClock>();
  }
  std::uint64_t NowMicros() override { return system_clock_->NowMicros(); }
  std::uint64_t NowNanos() override { return system_clock_->NowNanos(); }
  rocksdb::Status GetCurrentTime(std::int64_t* time) override { return system_clock_->GetCurrentTime(time); }
  void SleepForMicroseconds(int) override {}
  std::string GenerateUniqueId() override { return "firedrill"; }
  void Schedule(void (*)(void*), void*, Priority, void*, void (*)(void*)) override { refuse_thread(); }
  int UnSchedule(void*, Priority) override { return 0; }
  void StartThread(void (*)(void*), void*) override { refuse_thread(); }
  void SetBackgroundThreads(int, Priority) override {}
  int GetBackgroundThreads(Priority) override { return 1; }
  void IncBackgroundThreadsIfNeeded(int, Priority) override {}
  rocksdb::Status GetAbsolutePath(const std::string& path, std::string* absolute) override {
    *absolute = path;
    return rocksdb::Status::OK();
  }
};

}  // namespace

rocksdb::IOStatus StoreFiles::fail(const Error& error) {
  if (!failure) failure = error;
  return rocksdb::IOStatus::IOError(error.message);
}

std::unique_ptr<rocksdb::Env> make_seam_env(StoreFiles& files) { return std::make_unique<SeamEnv>(files); }

rocksdb::Options store_options(rocksdb::Env& env) {
  rocksdb::Options options;
  options.env = &env;
  options.info_log = std::make_shared<NoLogger>();
  options.paranoid_checks = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;  // the logs were scanned and cut before
  options.avoid_flush_during_recovery = true;
  options.avoid_flush_during_shutdown = true;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.max_bgerror_resume_count = 0;
  options.max_open_files = -1;
  options.max_file_opening_threads = 1;
  options.skip_stats_update_on_db_open = true;
  options.enable_thread_tracking = false;
  options.write_dbid_to_manifest = true;
  options.db_host_id = "";
  options.use_fsync = true;
  options.disable_auto_compactions = true;
  options.compression = rocksdb::kNoCompression;
  options.max_total_wal_size = std::uint64_t{1} << 40;
  options.max_manifest_file_size = 1;  // each edit makes a new description: one that counts is never appended to
  options.allow_concurrent_memtable_write = false;
  options.write_buffer_size = std::size_t{1} << 30;  // never full: a flush would be another thread's work
  options.arena_block_size = std::size_t{1} << 14;
  options.level0_slowdown_writes_trigger = 1 << 20;
  options.level0_stop_writes_trigger = 1 << 20;
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace firedrill
