// SeamEnv: what RocksDB asks of its environment, answered by the seam's file system (or, for a reader, by bytes that
// were read before), by a clock that stands still, and by no threads at all.
//
// Errors travel through RocksDB as its own codes and are kept here as they were, so that the caller gets the seam's
// error with its mark, also where RocksDB would have swallowed it. Appended bytes reach the seam with the next sync or
// close: nothing is promised before. What was synced is read back past the caches. Used by record_store.cpp only.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/seam/file_system.h"

namespace firedrill {

// One directory of files as RocksDB sees it.
struct StoreFiles {
  struct Entry {
    std::int64_t size = 0;
    Value bytes;  // empty: to be read from the seam
  };
  FileSystem* seam = nullptr;  // absent: nothing can change
  std::string directory;
  std::map<std::string, Entry, std::less<>> entries;  // by name
  std::optional<Error> failure;                       // the first one since it was taken
  std::map<std::string, std::int64_t> durable;        // of files written here: bytes synced and read back

  std::string path(std::string_view name) const { return directory + "/" + std::string(name); }
  rocksdb::IOStatus fail(const Error& error);
  rocksdb::IOStatus status(const Status& status) { return status ? rocksdb::IOStatus::OK() : fail(status.error()); }
};

std::unique_ptr<rocksdb::Env> make_seam_env(StoreFiles& files);

// The settings under which RocksDB does its I/O on the calling thread and in one order.
rocksdb::Options store_options(rocksdb::Env& env);

}  // namespace firedrill
