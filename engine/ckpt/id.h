// Where the files of a checkpoint lie under the checkpoint root, by its CheckpointId (engine/seam/checkpoint_id.h).
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
#include "engine/seam/checkpoint_id.h"

namespace firedrill {

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
