// Rebuilding a lost RocksDB catalog from the copies of manifest and mark that lie beside the shards. A checkpoint is
// taken over if its copy holds, its mark is there, and every shard is whole; all others are left out, and named. Of a
// catalog that cannot be read nothing else is taken: what attempts had seen and rejected is lost with it, and each
// checkpoint taken over counts again. From one that can be read and has lost checkpoints (audit.h), rejections,
// tombstones, claims and what attempts had seen are taken over as they are.
//
// The new catalog is made beside the old one, which is kept under another name. A crash in between leaves a root that
// can be rebuilt again. Errors: invalid_input (there is a catalog that can be read and has lost nothing, a root of
// files, or nothing to rebuild from), mismatch (a root of both kinds), and what the storage says. Threads: one call at
// a time; no job may use the root.
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
    bool lost = false;  // it has a mark or part of a copy, and no rejection or tombstone: it may have been validated
  };
  std::vector<CheckpointId> taken;  // oldest first
  std::vector<LeftOut> left_out;
  std::string why;      // the old catalog was of no use
  std::string kept_as;  // the old catalog's directory now; empty: there was none

  bool complete() const;  // nothing that was left out is lost
};

Result<RebuiltCatalog> rebuild_catalog(FileSystem& files);

std::string in_words(const RebuiltCatalog& rebuilt);

}  // namespace firedrill
