// The manifest: one JSON text that says what a checkpoint is made of (FORMAT.md). It is written and parsed by kernels
// only; everybody else reads the compiled form, a pack of plain records, through ManifestView.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/ckpt/id.h"
#include "engine/seam/compute.h"

namespace firedrill {

inline constexpr int format_version = 1;
inline constexpr std::string_view software_version = "firedrill 0.1.0";
inline constexpr std::int64_t manifest_size_max = std::int64_t{1} << 28;

struct TextRef {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

struct ManifestHead {
  std::int64_t step = 0;
  std::int32_t attempt = 0;
  std::int32_t trial = 0;
  std::int64_t world = 0;
  Digest job;
  Digest corpus;
  Digest state;
  TextRef run, numerics, layout, directory, software;
};

struct ShardRecord {
  TextRef name;
  std::int32_t kind = 0;  // ShardKind
  std::int32_t rank = 0;
  std::int32_t node = 0;
  std::int32_t reserved = 0;
  std::int64_t size = 0;
  Digest digest;  // of the whole file
  std::int64_t pieces_begin = 0;
  std::int64_t pieces_end = 0;
};

struct TensorRecord {
  TextRef name;
  std::int32_t dtype = 0;
  std::int32_t dimensions = 0;
  std::array<std::int64_t, 4> sizes{};
  std::int64_t count = 0;  // elements
};

// Elements [begin, end) of a tensor, at `offset` of the shard file.
struct PieceRecord {
  std::int64_t tensor = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t offset = 0;
  Digest digest;
};

struct FieldRecord {
  TextRef name;
  TextRef value;
};

class ManifestView {
 public:
  ManifestView() = default;
  // What parse_manifest gave.
  explicit ManifestView(Value compiled) : compiled_(std::move(compiled)) {}
  explicit operator bool() const { return static_cast<bool>(compiled_); }

  const ManifestHead& head() const { return *reinterpret_cast<const ManifestHead*>(compiled_[0].bytes().data()); }
  CheckpointId id() const {
    return CheckpointId{.step = head().step, .attempt = head().attempt, .trial = head().trial};
  }
  std::span<const ShardRecord> shards() const { return records<ShardRecord>(1); }
  std::span<const TensorRecord> tensors() const { return records<TensorRecord>(2); }
  std::span<const PieceRecord> pieces() const { return records<PieceRecord>(3); }
  std::span<const FieldRecord> fields() const { return records<FieldRecord>(4); }
  std::string_view text(TextRef ref) const { return compiled_[5].text().substr(ref.offset, ref.size); }
  const Digest& state_digest() const { return head().state; }
  const Value& compiled() const { return compiled_; }

 private:
  template <class Record>
  std::span<const Record> records(std::size_t part) const {
    const auto bytes = compiled_[part].bytes();
    return {reinterpret_cast<const Record*>(bytes.data()), bytes.size() / sizeof(Record)};
  }

  Value compiled_;
};

// That a text is all of a manifest: it ends with the digest of what is before. Errors: corrupted.
Status check_whole_manifest(std::string_view text);

// Errors: corrupted (not whole, not what its digest says, out of bounds), mismatch (a newer format, named with both
// versions).
Result<ManifestView> parse_manifest(Compute& compute, const Value& text);

struct ManifestScalars {
  std::int64_t step = 0;
  std::int32_t attempt = 0;
  std::int32_t trial = 0;
  std::int64_t ranks_per_node = 1;
  Digest state;
};

// The manifest's text from what all ranks reported (one report of encode_shards per rank, as a pack). Checks that every
// report is of this try and rank, and that the pieces cover every tensor exactly once. `identity` is
// RunIdentity::encoded, `directory` where the shards lie. Errors: mismatch.
Result<Value> build_manifest(Compute& compute, const ManifestScalars& scalars, const Value& identity,
                             const Value& directory, const Value& reports);

}  // namespace firedrill
