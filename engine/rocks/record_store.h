// RecordStore: a small ordered set of records (name -> bytes) in one directory, kept by RocksDB, which does all of its
// I/O through the seam: so its files take part in faults, recordings and crash states like any other.
//
// Reading is two steps, neither of which changes the disk. load_store() reads every file that counts, whole, through
// the seam; decode_store() is a pure function of these bytes (fit for a kernel), in which RocksDB sees memory only.
// Before RocksDB looks, every log is held against its format (log_scan.h): what a lost write at the end of the newest
// log may leave is cut off, everything else that is not whole is `corrupted`. A store is never read as less than it is.
//
// Writing: open() makes the store or recovers it, and write() is one synced batch. What open() found is durable when it
// returns, also where it was found in a cache only: the newest log is copied to a new file, synced, and renamed over
// the old one, since a sync behind somebody's failed sync promises nothing. All I/O happens on the calling thread, in
// the same order every time, and the bytes of the logs are the same every time. (A store whose logs have outgrown their
// limits is folded into a table file when it is opened; RocksDB puts a number of its own into these.)
//
// Errors: the seam's own where a call of the seam failed (code, mark and message are kept, and an error that RocksDB
// would swallow is still one); corrupted. Nothing throws through RocksDB. Threads: one call at a time per object; in
// the sim world only one fiber may be inside of one object, and fibers may switch while it writes. What it does not do:
// keep two writers apart (the exclusive claim of an attempt and its fencing do that).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/seam/file_system.h"

namespace firedrill {

// The records of a store, as decode_store() gives them: a pack of the names, each ended by a newline, sorted bytewise,
// and the values in that order.
class RecordView {
 public:
  explicit RecordView(Value records);

  std::size_t size() const { return names_.size(); }
  std::string_view name(std::size_t i) const { return names_[i]; }
  const Value& value(std::size_t i) const { return records_[i + 1]; }
  std::optional<Value> find(std::string_view name) const;
  // The records whose names begin with `prefix`: [first, last).
  struct Range {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  Range with_prefix(std::string_view prefix) const;

 private:
  Value records_;
  std::vector<std::string_view> names_;
};

struct LoadOptions {
  bool drop_caches = false;  // read past this node's caches
};

// All bytes that a store's records depend on, as one Value. Errors: not_found (no such directory), corrupted (a file
// too large to be right), unavailable (a listed file is not there), the seam's.
Result<Value> load_store(FileSystem& files, std::string_view directory, const LoadOptions& options = {});

// The records in what load_store() gave, for a RecordView. Pure. Errors: not_found (the store was not made yet: nothing
// but unfinished files), corrupted.
Result<Value> decode_store(const Value& loaded);

// The same, with RocksDB asked in any case; decode_store() asks it only if there is more than logs (replay.h).
Result<Value> decode_by_opening(const Value& loaded);

// When open() folds the logs into a table file.
struct StoreLimits {
  std::int64_t log_bytes = std::int64_t{64} << 20;
  int logs = 64;
  int tables = 4;  // merged into one from that many on
};

struct RecordChange {
  std::string name;            // neither empty nor with a newline
  std::optional<Value> value;  // absent: the record is removed. Its last byte must not be zero (log_scan.h)
};

class RecordStore {
 public:
  // The directory exists and its name is durable. Makes the store if there is none; `files` must outlive it.
  static Result<std::unique_ptr<RecordStore>> open(FileSystem& files, std::string_view directory,
                                                   const StoreLimits& limits = {});
  virtual ~RecordStore() = default;

  // What a reader would see.
  virtual Result<Value> records() = 0;
  // All of the changes, durable, or an error; then they may be there or not, and the next write recovers the store
  // first.
  virtual Status write(const std::vector<RecordChange>& changes) = 0;
};

}  // namespace firedrill
