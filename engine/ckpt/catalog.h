// Catalog: where commits, validations, rejections, tombstones, claims and what attempts have seen are recorded. Two
// kinds with one contract: files (FORMAT.md: a name is a record), and RocksDB (engine/rocks: a record is what the file
// would hold, under the file's path as its name; each of the calls below that write is one synced batch).
//
// Any rank reads, each on its own disk, and reading changes nothing. Only the coordinator writes, beginning with
// claim(). When a writing call returns well, what it wrote is durable, and what it did not mention is as it was. A
// catalog that is damaged is an error (corrupted), never an empty one; so is a root of the other kind (mismatch).
//
// Threads: one call at a time. In the sim world fibers may switch inside of a writing call.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/base/result.h"
#include "engine/ckpt/context.h"
#include "engine/seam/compute.h"
#include "engine/seam/file_system.h"

namespace firedrill {

class Catalog {
 public:
  virtual ~Catalog() = default;

  // --- Any rank --------------------------------------------------------------------------------------------------
  virtual Result<Survey> survey(FileSystem& files, Compute& compute) = 0;
  // The text of a committed manifest. Errors: not_found. An error that says something of the catalog, and nothing of
  // this checkpoint, is `unavailable`, so that nobody takes it for damage to the checkpoint.
  virtual Result<Value> manifest(FileSystem& files, Compute& compute, const CheckpointId& id, bool drop_caches) = 0;

  // --- Coordinator -------------------------------------------------------------------------------------------------
  // Makes what is missing under the root. Errors: already_exists (somebody else has claimed this attempt).
  virtual Status claim(FileSystem& files, int attempt) = 0;
  // `issued` turns true when the commit may be there although it fails.
  virtual Status commit(FileSystem& files, const CheckpointId& id, const Value& manifest, bool& issued) = 0;
  virtual Status mark_validated(FileSystem& files, const CheckpointId& id) = 0;
  virtual Status mark_rejected(FileSystem& files, const CheckpointId& id) = 0;
  virtual Status record_seen(FileSystem& files, const Survey::Seen& seen) = 0;
  // Makes what reading has found of this checkpoint durable, and the marks of those that are validated (it may be one
  // of them). Tombstones and rejections are synced only: who needs one whose sync may have failed makes it anew.
  virtual Status settle(FileSystem& files, const CheckpointId& id, const std::vector<CheckpointId>& validated) = 0;
  // Retirement: first the tombstones, then the manifests, then (the shards being gone) what else there is.
  virtual Status bury(FileSystem& files, const std::vector<CheckpointId>& ids) = 0;
  virtual Status unlist(FileSystem& files, const std::vector<CheckpointId>& ids) = 0;
  virtual Status forget(FileSystem& files, const std::vector<CheckpointId>& ids) = 0;
  virtual Status remove_tombstones(FileSystem& files, const std::vector<CheckpointId>& ids) = 0;
  // Removes the marks (directory::validated, rejected, tombstones) for which `goes` says so, and what attempts before
  // `attempt` left unfinished.
  using Goes = std::function<bool(std::string_view directory, const CheckpointId& id)>;
  virtual Status sweep(FileSystem& files, int attempt, const Goes& goes) = 0;
};

std::unique_ptr<Catalog> make_files_catalog();
std::unique_ptr<Catalog> make_rocksdb_catalog();
std::unique_ptr<Catalog> make_catalog(CatalogKind kind);

// The directory that only a root with the RocksDB catalog has. One with files has manifests/.
inline constexpr std::string_view catalog_directory = "catalog";
// Copies of the records beside the shards of a validated checkpoint, with the RocksDB catalog.
inline constexpr std::string_view manifest_copy = "manifest";
inline constexpr std::string_view validated_copy = "validated";

Error claimed_before(int attempt);
// The error of a root of the other kind. `wanted` is this job's.
Error other_catalog(CatalogKind wanted);

}  // namespace firedrill
