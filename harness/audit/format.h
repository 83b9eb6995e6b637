// The two formats that the audit decodes (engine/ckpt/FORMAT.md), as plain values. Decoding trusts nothing: every field
// is checked for its type and its bounds, and no length leads to an allocation that the input's own size does not
// cover.
//
// Threads: pure functions. Errors: corrupted, with what is wrong. In a namespace of its own, because the engine has
// types of the same names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "harness/audit/audit.h"

namespace firedrill::auditing {

struct Piece {
  std::size_t tensor = 0;  // index in Manifest::tensors
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t offset = 0;  // in the shard file
  Digest digest;
};

struct Shard {
  std::string name;
  std::int64_t rank = 0;
  std::int64_t size = 0;
  Digest digest;
  std::vector<Piece> pieces;
};

struct Tensor {
  std::string name;
  std::string dtype;
  std::int64_t width = 0;  // bytes per element
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;
};

struct Manifest {
  Provenance provenance;
  std::string layout;
  std::string software;
  std::string numerics;
  Digest corpus;
  std::int64_t world = 0;
  std::string directory;
  std::vector<Tensor> tensors;
  std::vector<Shard> shards;
};

Result<Manifest> decode_manifest(std::string_view text);

struct ShardFront {
  Provenance provenance;
  std::int64_t rank = 0;
  std::int64_t world = 0;
  std::int64_t kind = 0;
  std::int64_t size = 0;     // of the front
  std::int64_t payload = 0;  // bytes behind it
};

// No front is longer.
inline constexpr std::int64_t shard_front_max = 152;
// From the first bytes of a shard file.
Result<ShardFront> decode_shard_front(std::string_view bytes);
// "model-3": kind 0, rank 3.
std::string shard_file_name(std::int64_t kind, std::int64_t rank);

// What attempt n accepted: attempts/<n>.seen.
struct Accepted {
  std::int64_t attempt = 0;
  std::vector<CheckpointId> ids;
};
Result<Accepted> decode_accepted(std::string_view text);

// A name that stays in the directory it is looked up in.
bool is_plain_name(std::string_view name);

}  // namespace firedrill::auditing
