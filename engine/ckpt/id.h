// CheckpointId: the name of one try to publish one step, and where its files lie under the checkpoint root.
//
//   shards/<id>/model-0 ...   what the ranks wrote          manifests/<id>   the commit
//   validated/<id>            it was read back whole        rejected/<id>    it was found damaged
//   tombstones/<id>           it is being deleted           tmp/<name>       files that are not yet what they will be
//   attempts/<n>              the claim of attempt n        attempts/<n>.seen   the candidates attempt n accepted
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ckpt/state.h"

namespace firedrill {

struct CheckpointId {
  std::int64_t step = 0;
  int attempt = 0;
  int trial = 0;  // the try, from 1

  // By step, then attempt, then try: a greater id is a newer checkpoint.
  auto operator<=>(const CheckpointId&) const = default;
};

std::string to_string(const CheckpointId& id);  // "12-1-1"
// Only the canonical form: no leading zeros, no sign, nothing before or behind.
std::optional<CheckpointId> parse_checkpoint_id(std::string_view text);

namespace directory {
inline constexpr std::string_view shards = "shards";
inline constexpr std::string_view manifests = "manifests";
inline constexpr std::string_view validated = "validated";
inline constexpr std::string_view rejected = "rejected";
inline constexpr std::string_view tombstones = "tombstones";
inline constexpr std::string_view attempts = "attempts";
inline constexpr std::string_view tmp = "tmp";
}  // namespace directory

std::string path_in(std::string_view directory, std::string_view name);
std::string path_in(std::string_view directory, const CheckpointId& id);

std::string_view to_string(ShardKind kind);        // "model", "optimizer", "extra"
std::string shard_name(ShardKind kind, int rank);  // "model-0"
// A name that stays inside the directory it is looked up in: letters, digits, `-`, `_`, `.`; not empty, at most 128
// characters, not starting with a dot.
bool is_safe_name(std::string_view name);

// The ids among names, newest first; other names are skipped.
std::vector<CheckpointId> ids_among(const std::vector<std::string>& names);

}  // namespace firedrill
