// What the checkpoint protocol needs to know of the run, and what it gives back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/digest.h"
#include "engine/ckpt/id.h"
#include "engine/ckpt/manifest.h"
#include "engine/job/job.h"
#include "engine/job/layout.h"
#include "engine/seam/parts.h"

namespace firedrill {

// Who a checkpoint belongs to. Make it once per run and layout and keep it: in the sim world also over trials, with one
// run id, or no encoded shard would ever be found in the memo.
struct RunIdentity {
  std::string run_id;  // a safe name (see is_safe_name) of at most 64 characters
  Digest job_digest;
  Digest corpus_digest;
  std::string numerics_key;
  std::string layout;
  Value run;      // run_id as bytes, for the shard headers
  Value encoded;  // what the manifest says of all this and of the job's fields, as JSON text
};

RunIdentity make_run_identity(const Job& job, const Layout& layout, std::string_view run_id,
                              const Digest& corpus_digest, std::string_view numerics_key);

struct CheckpointContext {
  Parts& parts;
  const Job& job;
  const Group& world;           // all ranks; the coordinator is member 0
  const RunIdentity& identity;  // of this run in this layout
  int attempt = 1;
  std::int64_t floor = -1;  // highest acknowledged step; -1: none

  bool coordinator() const { return world.me == 0; }
  Call call(std::string_view purpose) const {
    return Call{.purpose = purpose, .deadline = parts.clock.now() + job.cluster.deadline};
  }
};

struct Publication {
  CheckpointId id;
  int tries = 1;
  // Retention or sweep failed behind a good publish (the coordinator knows): reported, and tried again next time.
  std::optional<Error> retention_error;
};

struct Damage {
  CheckpointId id;
  std::string what;
};

// What lies on the disk, as one rank lists it, or as all do together. Ids newest first.
struct Survey {
  struct Seen {
    int attempt = 0;
    std::vector<CheckpointId> accepted;
    bool operator==(const Seen&) const = default;
  };
  std::vector<CheckpointId> manifests;
  std::vector<CheckpointId> validated;
  std::vector<CheckpointId> rejected;
  std::vector<CheckpointId> tombstones;
  std::vector<int> claims;  // attempts, ascending
  std::vector<Seen> seen;   // by attempt, ascending
};

struct FindResult {
  std::optional<CheckpointId> chosen;  // absent: the job starts at step 0
  ManifestView manifest;               // of the chosen one
  bool validated = false;              // it has its mark
  std::vector<CheckpointId> accepted;  // the chosen one and all older candidates
  std::vector<Damage> damaged;         // newer ones that were rejected
};

// What a checkpoint must be of to count: a discovery of another run's or job's is an error that says so.
struct ExpectedRun {
  const RunIdentity& identity;
  const Job& job;
};

// What one look at one FileSystem finds, without peers.
struct Discovery {
  std::optional<CheckpointId> chosen;  // newest visible candidate that is whole, every digest checked
  ManifestView manifest;
  std::vector<Damage> damaged;   // newer ones that are not whole
  std::optional<Error> trouble;  // why nothing may be chosen although something is listed
};

// Candidates that were found whole, for somebody who looks at the same content again and again: with one protocol and
// for one expected run only.
struct WholeCandidates {
  static constexpr std::size_t known_max = 8192;  // then all are forgotten
  // A digest of a candidate's manifest, with its name, and of all its shards, known without reading; nothing: it is
  // not known.
  std::function<std::optional<Digest>(const CheckpointId&)> mark;
  std::unordered_map<Digest, ManifestView> known;  // looked up only, never walked
};

}  // namespace firedrill
