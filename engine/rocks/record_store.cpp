#include "engine/rocks/record_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/rocks/check_files.h"
#include "engine/rocks/replay.h"
#include "engine/rocks/seam_env.h"

namespace firedrill {
namespace {

constexpr std::string_view unfinished_name = "000000.dbtmp";  // of a log being copied; RocksDB clears such names
constexpr std::int64_t file_size_max = std::int64_t{1} << 30;

// The size a node is told may be an old one, and a log that is cut there would lose what was committed since. So the
// file is read to its end, wherever that is.
Result<Value> read_all(FileSystem& files, const std::string& path, const LoadOptions& options) {
  if (options.drop_caches) FD_TRY_VOID(files.drop_cache(path));
  FD_TRY(const auto file, files.open(path));
  FD_TRY(const std::int64_t size, file->size());
  if (size > file_size_max) return damaged(fmt::format("{} has {} bytes", path, size));
  FD_TRY(Value bytes, file->read(0, file_size_max));
  if (static_cast<std::int64_t>(bytes.size()) < size) {
    return damaged(fmt::format("{}: {} of {} bytes read", path, bytes.size(), size));
  }
  return bytes;
}

Result<Value> read_listed(FileSystem& files, const std::string& path, const LoadOptions& options) {
  auto bytes = read_all(files, path, options);
  if (!bytes.failed_with(Code::not_found)) return bytes;
  return Error{.code = Code::unavailable,
               .message = fmt::format("{} is listed and cannot be opened", path),
               .retryable = true,
               .injected = bytes.error().injected};
}

Error error_of(StoreFiles& files, const rocksdb::Status& status) {
  if (files.failure) {
    Error error = *std::exchange(files.failure, std::nullopt);
    error.message = fmt::format("the record store in {}: {}", files.directory, error.message);
    return error;
  }
  return damaged(fmt::format("the record store in {} cannot be read: {}", files.directory, status.ToString()));
}

// An error that RocksDB went on without is an error all the same.
Status outcome(StoreFiles& files, const rocksdb::Status& status) {
  if (status.ok() && !files.failure) return {};
  return error_of(files, status);
}

Result<Value> all_records(StoreFiles& files, rocksdb::DB& db) {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  std::string names;
  std::vector<Value> parts(1);
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    names.append(at->key().ToStringView()).push_back('\n');
    parts.push_back(Value::copy_of(at->value().ToStringView()));
  }
  FD_TRY_VOID(outcome(files, at->status()));
  parts[0] = Value::copy_of(std::string_view(names));
  return Value::pack(parts);
}

class RocksStore final : public RecordStore {
 public:
  RocksStore(FileSystem& seam, std::string_view directory, const StoreLimits& limits)
      : seam_(seam), directory_(directory), limits_(limits) {}
  ~RocksStore() override { close(); }

  Status recover() {
    close();
    auto checked = look({});
    // What looks damaged is looked at once more past the caches: a stale listing, too, may have left something out.
    if (checked.failed_with(Code::corrupted)) checked = look({.drop_caches = true});
    if (checked.failed_with(Code::not_found)) FD_TRY_VOID(look_for_none(checked));
    const bool fresh = checked.failed_with(Code::not_found);
    if (!checked && !fresh) return checked.error();
    if (fresh) FD_TRY_VOID(remove_empty_logs());
    if (!fresh && !checked->newest.empty()) FD_TRY_VOID(renew(checked->newest));
    env_ = make_seam_env(files_);
    rocksdb::Options options = store_options(*env_);
    options.create_if_missing = fresh;
    const bool full = !fresh && (checked->log_bytes > limits_.log_bytes || checked->logs > limits_.logs);
    options.avoid_flush_during_recovery = !full;
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, directory_, &opened);
    db_.reset(opened);
    log_bytes_ = fresh || full ? 0 : checked->log_bytes;
    Status made = outcome(files_, status);
    if (made) std::erase_if(files_.durable, [this](const auto& file) { return !files_.entries.contains(file.first); });
    for (auto& [name, entry] : files_.entries) entry.bytes = Value();
    if (made && full) made = merge_tables();
    made_ = made_ || made;
    if (!made) close();
    if (!made && fresh && look({.drop_caches = true}).failed_with(Code::not_found)) clear();
    return made;
  }

  Result<Value> records() override {
    if (!db_) FD_TRY_VOID(recover());
    return all_records(files_, *db_);
  }

  Status write(const std::vector<RecordChange>& changes) override {
    if (!db_ || log_bytes_ > limits_.log_bytes) FD_TRY_VOID(recover());
    rocksdb::WriteBatch batch;
    for (const RecordChange& change : changes) {
      FD_CHECK(!change.name.empty() && change.name.find('\n') == std::string::npos, "`{}` is no name", change.name);
      if (!change.value) {
        batch.Delete(change.name);
        continue;
      }
      const std::string_view value = change.value->text();
      FD_CHECK(!value.empty() && value.back() != '\0', "the value of {} ends in a zero byte", change.name);
      batch.Put(change.name, rocksdb::Slice(value.data(), value.size()));
    }
    log_bytes_ += static_cast<std::int64_t>(batch.GetDataSize());
    rocksdb::WriteOptions options;
    options.sync = true;
    Status written = outcome(files_, db_->Write(options, &batch));
    if (!written) close();
    return written;
  }

 private:
  Result<Checked> look(const LoadOptions& options) {
    FD_TRY(const Value loaded, load_store(seam_, directory_, options));
    StoreFiles found = unpacked(loaded);
    // What this writer knows to be unfinished is cut off, whatever it looks like.
    for (const auto& [name, size] : files_.durable) {
      const auto entry = found.entries.find(name);
      if (!is_log(name) || entry == found.entries.end() || entry->second.size <= size) continue;
      const std::string_view clean = entry->second.bytes.text().substr(0, static_cast<std::size_t>(size));
      entry->second = {.size = size, .bytes = Value::copy_of(clean)};
    }
    found.durable = files_.durable;
    files_ = std::move(found);
    files_.seam = &seam_;
    FD_TRY(const std::vector<std::string> listed, seam_.list(directory_));
    for (const std::string& name : listed) files_.entries.try_emplace(name);  // left over, for RocksDB to clear
    return check_files(files_);
  }

  // There seems to be no store, and whoever makes one removes what is there. A name that is seen late only would be
  // lost by that: so it is looked for again past the caches, often where other names of a store are there already.
  Status look_for_none(Result<Checked>& checked) {
    constexpr int looks = 4;
    for (int i = 0; i < looks && checked.failed_with(Code::not_found); ++i) {
      const bool nothing = files_.entries.empty();
      checked = look({.drop_caches = true});
      if (nothing && files_.entries.empty()) break;
    }
    if (!made_ || !checked.failed_with(Code::not_found)) return {};
    return Error{.code = Code::unavailable,
                 .message = fmt::format("the record store in {} was there, and is not to be seen", directory_),
                 .retryable = true};
  }

  // RocksDB makes no store where a log lies, even one that holds nothing: whoever made it died before there was a
  // store.
  Status remove_empty_logs() {
    for (auto at = files_.entries.begin(); at != files_.entries.end();) {
      const bool empty_log = is_log(at->first) && at->second.bytes && at->second.size == 0;
      if (empty_log) {
        Status removed = seam_.remove(files_.path(at->first));
        if (!removed && !removed.failed_with(Code::not_found)) return removed;
      }
      at = empty_log ? files_.entries.erase(at) : std::next(at);
    }
    return {};
  }

  // Nobody knows of the newest log whether its last sync went well. What was read of it is written to another file,
  // whose sync says so.
  Status renew(const std::string& name) {
    const std::string temporary = files_.path(unfinished_name);
    auto file = seam_.create(temporary);
    if (file.failed_with(Code::already_exists)) {
      FD_TRY_VOID(seam_.remove(temporary));
      file = seam_.create(temporary);
    }
    if (!file) return file.error();
    const Value& bytes = files_.entries[name].bytes;
    if (bytes.size() > 0) FD_TRY_VOID((*file)->write(0, bytes));
    FD_TRY_VOID((*file)->sync());
    FD_TRY_VOID((*file)->close());
    FD_TRY(const Value back, read_all(seam_, temporary, {.drop_caches = true}));
    if (back.text() != bytes.text()) {
      return Error{.code = Code::corrupted, .message = fmt::format("{} reads back otherwise than written", temporary)};
    }
    FD_TRY_VOID(seam_.rename(temporary, files_.path(name)));
    return seam_.sync_directory(directory_);
  }

  Status merge_tables() {
    std::vector<rocksdb::LiveFileMetaData> live;
    db_->GetLiveFilesMetaData(&live);
    if (static_cast<int>(live.size()) < limits_.tables) return {};
    std::vector<std::string> names;
    for (const rocksdb::LiveFileMetaData& table : live) names.push_back(table.name);
    return outcome(files_, db_->CompactFiles({}, names, 1));
  }

  // A store that could not be made holds nothing. Its names may be ones that a sync has failed on, of which no later
  // sync promises anything, so the next one is made of new ones.
  void clear() {
    const auto names = seam_.list(directory_);
    if (!names) return;
    static_cast<void>(seam_.remove(files_.path(current_name)));  // without it the rest is no store
    for (const std::string& name : *names) {
      if (name != current_name) static_cast<void>(seam_.remove(files_.path(name)));
    }
  }

  // Nothing is written: every batch was synced.
  void close() {
    files_.seam = nullptr;
    if (db_) db_->Close().PermitUncheckedError();
    db_.reset();
    env_.reset();
    files_.failure.reset();
  }

  FileSystem& seam_;
  std::string directory_;
  StoreLimits limits_;
  StoreFiles files_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::int64_t log_bytes_ = 0;
  bool made_ = false;  // it has been open
};

}  // namespace

RecordView::RecordView(Value records) : records_(std::move(records)) {
  std::string_view names = records_[0].text();
  while (!names.empty()) {
    const std::size_t end = names.find('\n');
    names_.push_back(names.substr(0, end));
    names.remove_prefix(end + 1);
  }
}

std::optional<Value> RecordView::find(std::string_view name) const {
  const auto at = std::lower_bound(names_.begin(), names_.end(), name);
  if (at == names_.end() || *at != name) return std::nullopt;
  return value(static_cast<std::size_t>(at - names_.begin()));
}

RecordView::Range RecordView::with_prefix(std::string_view prefix) const {
  const auto first = std::lower_bound(names_.begin(), names_.end(), prefix);
  const auto last = std::find_if(first, names_.end(), [prefix](auto name) { return !name.starts_with(prefix); });
  return {.first = static_cast<std::size_t>(first - names_.begin()),
          .last = static_cast<std::size_t>(last - names_.begin())};
}

Result<Value> load_store(FileSystem& files, std::string_view directory, const LoadOptions& options) {
  const auto path = [directory](std::string_view name) { return std::string(directory) + "/" + std::string(name); };
  std::string names;
  std::vector<Value> parts(2);
  const auto keep = [&](std::string_view name, Value bytes) {
    names.append(name).push_back('\n');
    parts.push_back(std::move(bytes));
  };
  // A listing may be stale: what can be found without one is.
  std::optional<std::string> description;
  std::string newest;
  auto current = read_all(files, path(current_name), options);
  if (current) {
    description = description_named(current->text());
    keep(current_name, *std::move(current));
  } else if (!current.failed_with(Code::not_found)) {
    return current.error();
  }
  if (description) {
    FD_TRY(Value bytes, read_listed(files, path(*description), options));
    keep(*description, std::move(bytes));
    newest = log_beside(*description);
  }
  FD_TRY(const std::vector<std::string> listed, files.list(directory));
  std::vector<std::string> wanted;
  std::copy_if(listed.begin(), listed.end(), std::back_inserter(wanted),
               [](const std::string& name) { return is_log(name) || is_table(name); });
  if (std::none_of(wanted.begin(), wanted.end(), [&](const auto& name) { return is_table(name) || name == newest; }) &&
      !newest.empty()) {
    wanted.push_back(newest);
  }
  for (const std::string& name : wanted) {
    FD_TRY(Value bytes, read_listed(files, path(name), options));
    keep(name, std::move(bytes));
  }
  parts[0] = Value::copy_of(directory);
  parts[1] = Value::copy_of(std::string_view(names));
  return Value::pack(parts);
}

Result<Value> decode_by_opening(const Value& loaded) {
  StoreFiles files = unpacked(loaded);
  FD_TRY_VOID(check_files(files));
  const std::unique_ptr<rocksdb::Env> env = make_seam_env(files);
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(store_options(*env), files.directory, &opened);
  const std::unique_ptr<rocksdb::DB> db(opened);
  FD_TRY_VOID(outcome(files, status));
  return all_records(files, *db);
}

Result<Value> decode_store(const Value& loaded) {
  StoreFiles files = unpacked(loaded);
  StoreContents contents;
  FD_TRY(const Checked checked, check_files(files, &contents));
  if (checked.tables == 0 && checked.oldest_log != 0) {
    std::optional<Value> records = replay({.edits = std::move(contents.edits.payloads),
                                           .batches = std::move(contents.batches.payloads),
                                           .oldest_log = checked.oldest_log});
    if (records) return *std::move(records);
  }
  return decode_by_opening(loaded);
}

Result<std::unique_ptr<RecordStore>> RecordStore::open(FileSystem& files, std::string_view directory,
                                                       const StoreLimits& limits) {
  auto store = std::make_unique<RocksStore>(files, directory, limits);
  FD_TRY_VOID(store->recover());
  return std::unique_ptr<RecordStore>(std::move(store));
}

}  // namespace firedrill
