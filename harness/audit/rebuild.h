// Rebuilding a lost RocksDB catalog from the copies of manifest and mark that lie beside the shards, and from nothing
// else. A checkpoint is taken over if its copy holds, its mark is there, and every shard is whole; all others are left
// out, and named. What attempts had seen is lost with the catalog: each checkpoint taken over counts again.
//
// The new catalog is made beside the old one, which is kept under another name. A crash in between leaves a root that
// can be rebuilt again. Errors: invalid_input (there is a catalog that can be read, a root of files, or nothing to
// rebuild from), and what the storage says. Threads: one call at a time; no job may use the root.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"
#include "harness/audit/audit.h"

namespace firedrill {

struct RebuiltCatalog {
  struct LeftOut {
    CheckpointId id;
    std::string why;
  };
  std::vector<CheckpointId> taken;  // oldest first
  std::vector<LeftOut> left_out;
  std::string why;      // the old catalog could not be read
  std::string kept_as;  // the old catalog's directory now; empty: there was none
};

Result<RebuiltCatalog> rebuild_catalog(FileSystem& files);

std::string in_words(const RebuiltCatalog& rebuilt);

}  // namespace firedrill
