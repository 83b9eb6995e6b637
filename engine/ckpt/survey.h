// Surveys: what lies on a disk, for one rank and for all ranks together; and the .seen files of attempts.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "engine/base/result.h"
#include "engine/ckpt/context.h"

namespace firedrill {

// `rank` is whose listing it is.
Value encode_survey(int rank, const Survey& survey);
Result<Survey> decode_survey(const Value& encoded);

// What any of them lists. Errors: mismatch (two of them read different contents of one .seen file).
Result<Survey> union_of(std::span<const Survey> surveys);

// attempts/<n>.seen: a text that ends with its digest.
Value encode_seen(const Survey::Seen& seen);
// Errors: corrupted.
Result<Survey::Seen> parse_seen(std::string_view text);

// Takes a name in attempts/ into the survey: a claim, or a record, whose text is then asked for. Other names are left
// alone. Errors: corrupted (a record that is not whole, or of another attempt), and those of `text`.
Status add_attempt(Survey& survey, std::string_view name, const std::function<Result<Value>()>& text);
// By attempt, as a Survey must be.
void sort_attempts(Survey& survey);

// Every attempt behind that of the checkpoint has seen it.
bool is_visible(const Survey& survey, const CheckpointId& id);
// Checkpoints newer than all manifests that have their mark, so they had a manifest that was durable, and have been
// neither given up nor retired: their manifests are lost. Newest first.
std::vector<CheckpointId> lost_manifests(const Survey& survey);

inline constexpr std::int64_t seen_size_max = std::int64_t{1} << 24;

}  // namespace firedrill
