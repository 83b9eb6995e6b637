// Audit: our second, independent decoder of checkpoints. Written from engine/ckpt/FORMAT.md, it shares no code with the
// engine that wrote them, so that a mistake in the one is not repeated in the other. It verifies everything: manifest,
// every shard's existence, size, digest, header and provenance, every piece's digest, and that the pieces cover each
// tensor exactly once.
//
// Nothing on the disk is trusted: lengths are held against file sizes before anything is allocated, and memory stays
// within the largest file read at once (whole_file_max) however large a checkpoint is.
//
// A root with the RocksDB catalog is read through engine/rocks, which is a library here as it is there; so are those of
// engine/base that know nothing of the format (digests, JSON texts).
//
// Threads: one per Auditor. Errors: none; what cannot be read is part of the report. It reads only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/digest.h"
#include "engine/seam/checkpoint_id.h"
#include "engine/seam/file_system.h"
#include "engine/seam/observer.h"

namespace firedrill {

namespace auditing {
struct Manifest;
class Records;
}  // namespace auditing

// --- What a decoder says of a saved state: keyed by (name, range, digest), so that decoders of other formats fit
// -------

// Elements [begin, end) of a tensor, counted row by row.
struct AuditedPiece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Digest digest;      // of the bytes
  std::string shard;  // where it lies
};

struct AuditedTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  Digest digest;  // of the bytes of the whole tensor, put together from its pieces
  std::vector<AuditedPiece> pieces;
};

struct Provenance {
  std::string run;
  Digest job;
  CheckpointId id;
  bool operator==(const Provenance&) const = default;
};

// What manifest and shards of one checkpoint hold. Immutable, and shared by all reports that see the same bytes.
struct CheckpointContents {
  Provenance provenance;  // by the manifest
  std::string layout;
  std::string software;
  std::string numerics;
  Digest corpus;
  std::int64_t world = 0;
  std::int64_t shards = 0;
  std::int64_t bytes = 0;              // of all shards
  std::vector<AuditedTensor> tensors;  // by name; without digests if not intact
  // Of the list (name, digest) of all tensors, as StateTable::describe(tensors) makes it; only if intact.
  Digest state;
  std::vector<std::string> problems;  // why it is not intact
  bool intact = false;
  bool provenance_coherent = false;  // all parts that could be read name the same run, job, step, attempt and try

  std::vector<NamedDigest> named_digests() const;
};

// --- What lies under a checkpoint root
// -----------------------------------------------------------------------------------

struct AuditedCheckpoint {
  CheckpointId id;
  bool committed = false;  // its manifest is there
  bool visible = false;    // every later attempt's record of what it accepted names it
  bool validated = false;
  bool rejected = false;
  bool tombstone = false;
  bool has_shards = false;  // its shard directory is there
  // Copies of manifest and mark lie beside whole shards, and the catalog knows nothing of it: neither a commit nor a
  // rejection nor a tombstone. A tombstone outlives the shards, so retirement never leaves that behind.
  bool lost_by_catalog = false;
  std::shared_ptr<const CheckpointContents>
      contents;  // never null; empty if not committed, and with a problem unless retired

  bool intact() const { return committed && contents->intact; }
  // It was deleted as it should be, and nothing but the tombstone is left.
  bool retired() const { return tombstone && !committed && !has_shards; }
  // Neither given up nor being deleted: it must be whole.
  bool stands() const { return committed && visible && !rejected && !tombstone; }
};

struct AuditReport {
  std::vector<AuditedCheckpoint> checkpoints;  // oldest first; also shard directories and marks without a manifest
  std::vector<std::int64_t> attempts;          // claimed, ascending
  std::vector<std::string> problems;  // of the root: directories that cannot be listed, names that do not belong

  bool record_damaged = false;  // a directory, or a record of what an attempt accepted, cannot be read
  // Why nothing is known of any checkpoint but that its shards are there; empty: the records could be read.
  std::string unknown_because;

  const AuditedCheckpoint* find(const CheckpointId& id) const;
  // The newest that stands, whole or not; nullptr: none.
  const AuditedCheckpoint* newest() const;
  // It was validated, is newer than all that stand, and its manifest is gone without a tombstone: retention never
  // leaves that behind.
  bool lost(const AuditedCheckpoint& checkpoint) const;
  // Something that must be whole is not, or is lost.
  bool damaged() const;
};

// Audits again and again (probes): what was decoded before is looked up by the digests of all bytes it came from, or by
// the marks of somebody who knows those.
class Auditor {
 public:
  // A digest of the manifest of a checkpoint, with its name, and of all in its directory of shards, from somebody who
  // knows it without reading; nothing: not known. Where two are equal, so is what would be decoded.
  using ContentMark = std::function<std::optional<Digest>(const CheckpointId&)>;
  AuditReport audit(FileSystem& files, const ContentMark& mark = {});
  // What was decoded under a mark; nullptr: nothing yet.
  const CheckpointContents* contents_of(const Digest& mark) const {
    const auto known = marked_.find(mark);
    return known == marked_.end() ? nullptr : known->second.get();
  }
  // What the copy of a manifest beside its shards says, held against the shards.
  std::shared_ptr<const CheckpointContents> decode_copy(FileSystem& files, const CheckpointId& id);

 private:
  std::shared_ptr<const CheckpointContents> decode(FileSystem& files, const CheckpointId& id,
                                                   const Result<Value>& manifest_text);
  std::shared_ptr<const CheckpointContents> decode_marked(FileSystem& files, const CheckpointId& id,
                                                          const auditing::Records& records, const ContentMark& mark);
  bool is_lost(FileSystem& files, const AuditedCheckpoint& checkpoint);

  // By the digest of the manifest's text, and by the digests of all bytes. Both are looked up only, never walked.
  std::unordered_map<Digest, std::shared_ptr<const auditing::Manifest>> manifests_;
  // Looked up only, never walked.
  std::unordered_map<Digest, std::shared_ptr<const CheckpointContents>> contents_;
  // The same by their marks: those whose manifest names no other directory than their own.
  std::unordered_map<Digest, std::shared_ptr<const CheckpointContents>> marked_;
  // Records of a RocksDB catalog, by the digest of all its files. Looked up only, never walked.
  std::unordered_map<Digest, Value> catalogs_;
};

// One look at a directory.
AuditReport audit_directory(FileSystem& files);

// --- Comparing
// -------------------------------------------------------------------------------------------------------------

struct TensorDifference {
  std::string tensor;
  std::string how;  // "digest 12.. and 34..", "f32 [4, 4] and f32 [4, 8]", "only in the first"
};
// By tensor name. Both must be intact.
std::vector<TensorDifference> compare(const CheckpointContents& a, const CheckpointContents& b);

struct StepComparison {
  std::int64_t step = 0;
  CheckpointId a;
  CheckpointId b;
  std::vector<TensorDifference> differences;
};
struct DirectoryComparison {
  std::vector<StepComparison> steps;    // that both hold intact, by step; the newest checkpoint of each
  std::vector<std::int64_t> only_in_a;  // steps
  std::vector<std::int64_t> only_in_b;
  bool equal() const;  // nothing differs where both hold a step, and there is such a step
};
DirectoryComparison compare(const AuditReport& a, const AuditReport& b);

// For people: one line per checkpoint, problems below it; `tensors`: also one line per tensor.
std::string in_words(const AuditReport& report, bool tensors = false);
std::string in_words(const DirectoryComparison& comparison);

}  // namespace firedrill
