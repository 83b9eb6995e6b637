// Shard files: a small header with the provenance, then the bytes of the pieces, one after another, without padding
// (FORMAT.md). What lies where is said by the manifest; until there is one, by the report that encoding gives.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/ckpt/id.h"
#include "engine/ckpt/state.h"
#include "engine/seam/compute.h"

namespace firedrill {

inline constexpr std::size_t run_id_size_max = 64;
// No header is longer: enough to read to check a shard's provenance.
inline constexpr std::int64_t shard_header_size_max = 88 + run_id_size_max;

// Whose shard it is.
struct ShardHeader {
  CheckpointId id;
  int rank = 0;
  int world = 0;
  ShardKind kind = ShardKind::model;
  Digest job;
  std::string run_id;
  std::int64_t size = 0;     // of the header, where the payload begins
  std::int64_t payload = 0;  // bytes
};

std::string encode_shard_header(const ShardHeader& header);
// From the first bytes of the file. Errors: corrupted; mismatch (a newer format).
Result<ShardHeader> parse_shard_header(std::string_view bytes);

// For the shards of one checkpoint: whether a front is, byte by byte, the header that such a shard has. What is not may
// be one all the same: parse_shard_header says what it is.
class ExpectedHeader {
 public:
  // Rank, kind and payload of `header` are not looked at.
  explicit ExpectedHeader(const ShardHeader& header);
  // `file_size`: of the whole file.
  bool matches(std::string_view front, int rank, ShardKind kind, std::int64_t file_size);

 private:
  std::array<char, static_cast<std::size_t>(shard_header_size_max)> bytes_{};
  std::size_t size_ = 0;  // 0: there is no such header
};

struct EncodeScalars {
  std::int64_t step = 0;
  std::int32_t attempt = 0;
  std::int32_t trial = 0;
  std::int32_t rank = 0;
  std::int32_t world = 0;
  Digest job;
};

// The fixed front of a report: what a rank says of the three files it wrote. Behind it follow, per file, its pieces.
struct ReportHead {
  std::uint64_t word = 0;  // whose report it is; an error that is sent in its place begins with another one (agree.h)
  EncodeScalars scalars;
  std::array<std::int64_t, shard_kind_count> sizes{};
  std::array<Digest, shard_kind_count> digests{};
};

struct EncodedShards {
  Value report;
  std::array<Value, shard_kind_count> shards;
};

// What rank `scalars.rank` of `scalars.world` saves of `state`. `structure` is encode_structure(state), `run` the run
// id.
Result<EncodedShards> encode_shards(Compute& compute, const EncodeScalars& scalars, const Value& structure,
                                    const Value& run, const StateView& state);

// Errors: corrupted.
Result<ReportHead> report_head(const Value& report);

// Are these the bytes that the report speaks of, piece by piece, with its provenance? Errors: corrupted, naming shard
// and tensor.
Status check_shards(Compute& compute, const Value& report, const std::array<Value, shard_kind_count>& shards);

// One piece as a report lists it.
struct ReportedPiece {
  std::string_view tensor;
  DType dtype = DType::f32;
  Shape shape;  // of the whole tensor
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t offset = 0;  // in the shard file
  Digest digest;
};

// All pieces of a report, by shard kind; they borrow the report's bytes. Errors: corrupted.
Result<std::array<std::vector<ReportedPiece>, shard_kind_count>> reported_pieces(const Value& report);

}  // namespace firedrill
