// Steps: what several mutants do alike, in the manner of a system that knows no durability.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "engine/ckpt/context.h"
#include "engine/ckpt/state.h"
#include "engine/seam/file_system.h"

namespace firedrill {

// Creates `path`, writes and closes it; nothing is synced.
Status write_unsynced(FileSystem& files, std::string_view path, const Value& bytes);
// The same under the name `temporary`, which is then moved to `path`.
Status write_and_rename(FileSystem& files, std::string_view temporary, std::string_view path, const Value& bytes);
// As open(path, "w") and a write do: for a moment there is nothing.
Status write_over(FileSystem& files, std::string_view path, const Value& bytes);
// Whole text of a small file; empty if it is not there.
Result<std::string> text_of(FileSystem& files, std::string_view path);

// Deletes manifests, marks and shards, without asking whether anything newer is validated. What is gone is no error.
Status delete_checkpoints(FileSystem& files, const std::vector<CheckpointId>& ids);

// Leaves as candidates only `newest` and what is older; with none, nothing is a candidate.
void look_no_further_than(std::optional<CheckpointId> newest, Survey& survey);

// Of a restored state: what `change` makes of a number that is saved as one i64.
void change_number(StateView& state, std::string_view tensor, const std::function<std::int64_t(std::int64_t)>& change);

}  // namespace firedrill
