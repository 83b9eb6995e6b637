// The storage contract: what a file system must do so that a checkpoint on it can be trusted
// (engine/seam/file_system.h), measured on the directory that will hold the checkpoints, and how fast it does it.
//
// A reader and a writer are different processes. On one machine they share one cache: what other nodes see, and when,
// is told only by ranks that run there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/preflight/finding.h"

namespace firedrill::preflight {

// A step of the probe that failed on a rank, in the words of the storage.
struct StorageTrouble {
  std::string step;  // "exclusive create", "sync of a file" ...
  std::string error;
};

struct StorageOfRank {
  std::vector<StorageTrouble> troubles;
  // Exclusive create: names that all ranks tried to make at once, and those of them that this one got.
  int races = 0;
  std::vector<int> won;
  // Renames over a file that is read meanwhile. Of a reader: what it saw.
  std::int64_t renames = 0;
  std::int64_t reads = 0;
  std::int64_t missing = 0;    // neither the old nor the new was there
  std::int64_t mixed = 0;      // bytes of two at once, or not all bytes
  std::int64_t backwards = 0;  // an older one after a newer one
  // Milliseconds of each sync; rank 0.
  std::vector<double> file_syncs;
  std::vector<double> directory_syncs;
  // Milliseconds until this rank saw what rank 0 had made; below zero: not within the patience.
  std::vector<double> seen_by_stat;
  std::vector<double> seen_by_list;
  std::vector<double> seen_grown;  // a size that had changed
  // Rank 0; -1: not known.
  std::int64_t free_bytes = -1;
  std::int64_t free_inodes = -1;
  // All ranks at once: seconds for `moved` bytes, synced; and read back by another rank with caches dropped.
  std::int64_t moved = 0;
  double write_seconds = 0;
  double read_seconds = 0;
  std::int64_t read_wrong = 0;  // files whose bytes were not those written
  // Rank 0 alone; 0: not measured.
  std::int64_t moved_alone = 0;
  double write_alone_seconds = 0;
};

void to_json(Json& json, const StorageTrouble& trouble);
void from_json(const Json& json, StorageTrouble& trouble);
void to_json(Json& json, const StorageOfRank& rank);
void from_json(const Json& json, StorageOfRank& rank);

struct StorageNeeds {
  std::string where;
  int ranks = 1;                // of the job; a probe has at least two
  std::int64_t checkpoint = 0;  // bytes of one
  std::int64_t files = 0;       // of one, directories included
  int kept = 2;
  double interval_seconds = 0;  // between two checkpoints
  bool interval_given = false;  // by the user; else an estimate of the job's cluster table
};

// Syncs that a save waits for one behind the other: a shard, its directory and the parent, manifest, its name, mark,
// its name, and the tombstone of the one that goes.
inline constexpr int syncs_of_a_save = 8;

struct StorageSpeed {
  double write_bandwidth = 0;  // bytes per second, of all ranks together
  double read_bandwidth = 0;
  double sync_median = 0;  // ms
  double save_seconds = 0;
  double restore_seconds = 0;
};

// Pure.
StorageSpeed speed_of(const std::vector<StorageOfRank>& ranks, const StorageNeeds& needs);
std::vector<Finding> judge_storage(const std::vector<StorageOfRank>& ranks, const StorageNeeds& needs);

// The value that a share of the others is not above; 0 of none.
double percentile(std::vector<double> values, double share);

}  // namespace firedrill::preflight
