// StoreViews: what the record store of a RocksDB catalog says, looked up by the digest of its files. Where it can be
// read and holds records, a probe's answer depends on these and on the shards of those checkpoints alone that they name
// as committed: the right engine and the audit look at nothing else, as each manifest names the directory of its own.
//
// Threads: one. Errors: none; a store that cannot be read decides nothing.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/seam/checkpoint_id.h"
#include "engine/seam/file_system.h"

namespace firedrill {

class StoreViews {
 public:
  struct Committed {
    CheckpointId id;
    std::string record;  // manifests/ID: its name
    Digest manifest;     // of that record's text
  };
  struct Known {
    bool decides = false;  // nothing but what follows counts, and the shards of those committed
    Digest records;        // of all names and texts
    Digest others;         // the same without the texts of manifests
    std::vector<Committed> committed;

    const Committed* find(const CheckpointId& id) const;
  };
  // `content` tells contents of the store apart, and `files` shows the one that it is of. Valid until the next call.
  const Known& of(const Digest& content, FileSystem& files);

 private:
  static constexpr std::size_t known_max = 1 << 15;  // then all are forgotten
  std::unordered_map<Digest, Known> known_;          // looked up only, never walked
};

}  // namespace firedrill
