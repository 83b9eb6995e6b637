// Attempts: the claim, what an attempt lists, what it may see of earlier ones, and its own record of that.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/ckpt/agree.h"
#include "engine/ckpt/files.h"
#include "engine/ckpt/protocol.h"
#include "engine/ckpt/survey.h"

namespace firedrill {
namespace {

constexpr std::array<std::string_view, 7> directories = {
    directory::attempts, directory::manifests,  directory::rejected, directory::shards,
    directory::tmp,      directory::tombstones, directory::validated};

// An earlier attempt may have made them and died before their names were durable: so the root is always synced.
Status make_directories(FileSystem& files) {
  FD_TRY(const std::vector<std::string> there, files.list(""));
  for (const std::string_view name : directories) {
    if (std::find(there.begin(), there.end(), name) != there.end()) continue;
    if (Status made = files.make_directory(name); !made && !made.failed_with(Code::already_exists)) return made;
  }
  return files.sync_directory("");
}

Status claim(FileSystem& files, int attempt) {
  FD_TRY_VOID(make_directories(files));
  const std::string path = path_in(directory::attempts, std::to_string(attempt));
  auto file = files.create(path);
  if (file.failed_with(Code::already_exists)) {
    return Error{.code = Code::already_exists,
                 .message = fmt::format("attempt {} was claimed before: {} exists", attempt, path),
                 .hint = "every launch needs an attempt number of its own"};
  }
  if (!file) return file.error();
  FD_TRY_VOID((*file)->sync());
  FD_TRY_VOID((*file)->close());
  return files.sync_directory(directory::attempts);
}

Result<std::vector<CheckpointId>> listed(FileSystem& files, std::string_view directory) {
  auto names = files.list(directory);
  if (names.failed_with(Code::not_found)) return std::vector<CheckpointId>();
  if (!names) return names.error();
  return ids_among(*names);
}

Status add_attempt(FileSystem& files, const std::string& name, Survey& survey) {
  constexpr std::string_view ending = ".seen";
  if (const auto claimed = parse_whole(name); claimed && *claimed <= INT32_MAX) {
    survey.claims.push_back(static_cast<int>(*claimed));
  }
  if (!name.ends_with(ending)) return {};
  const auto attempt = parse_whole(std::string_view(name).substr(0, name.size() - ending.size()));
  if (!attempt || name != fmt::format("{}{}", *attempt, ending)) return {};
  const std::string path = path_in(directory::attempts, name);
  FD_TRY(const Value text, read_whole(files, path, seen_size_max));
  auto seen = parse_seen(text.text());
  if (seen && seen->attempt != static_cast<int>(*attempt)) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("{} is the record of attempt {}", path, seen->attempt)};
  }
  if (!seen) {
    return Error{.code = seen.error().code,
                 .message = fmt::format("{}: {}", path, seen.error().message),
                 .hint = "without it nobody knows which checkpoints count: restore it, or move the directory away"};
  }
  survey.seen.push_back(*std::move(seen));
  return {};
}

}  // namespace

Status Protocol::claim_attempt(const CheckpointContext& ctx) {
  const PhaseScope phase(ctx.parts.position, Phase::rendezvous);
  Value word;
  if (ctx.coordinator()) {
    const Status claimed = claim(ctx.parts.files, ctx.attempt);
    if (!claimed && ends_the_call(claimed.error())) return claimed.error();
    word = encode_status(claimed);
  }
  FD_TRY(const Agreed told, tell_all(ctx, "checkpoint.claim", word));
  if (told.failure) return *told.failure;
  return {};
}

Result<Survey> Protocol::survey(FileSystem& files) {
  Survey survey;
  FD_TRY(survey.manifests, listed(files, directory::manifests));
  FD_TRY(survey.validated, listed(files, directory::validated));
  FD_TRY(survey.rejected, listed(files, directory::rejected));
  FD_TRY(survey.tombstones, listed(files, directory::tombstones));
  auto names = files.list(directory::attempts);
  if (names.failed_with(Code::not_found)) return survey;
  if (!names) return names.error();
  for (const std::string& name : *names) FD_TRY_VOID(add_attempt(files, name, survey));
  std::sort(survey.claims.begin(), survey.claims.end());
  std::sort(survey.seen.begin(), survey.seen.end(),
            [](const Survey::Seen& a, const Survey::Seen& b) { return a.attempt < b.attempt; });
  return survey;
}

std::vector<CheckpointId> Protocol::candidates(const Survey& survey) const {
  const auto in = [](const std::vector<CheckpointId>& ids, const CheckpointId& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  const auto visible = [&survey, &in](const CheckpointId& id) {
    return std::all_of(survey.seen.begin(), survey.seen.end(), [&in, &id](const Survey::Seen& seen) {
      return seen.attempt <= id.attempt || in(seen.accepted, id);
    });
  };
  std::vector<CheckpointId> result;
  for (const CheckpointId& id : survey.manifests) {
    if (!in(survey.rejected, id) && !in(survey.tombstones, id) && visible(id)) result.push_back(id);
  }
  return result;
}

Result<Survey> Protocol::agree_on_survey(const CheckpointContext& ctx) {
  const auto mine = survey(ctx.parts.files);
  if (!mine && ends_the_call(mine.error())) return mine.error();
  FD_TRY(const Agreed all, agree(ctx, "checkpoint.survey", mine ? encode_survey(*mine) : encode_error(mine.error())));
  if (all.failure) return *all.failure;
  std::vector<Survey> surveys;
  for (const Value& part : all.all.parts()) {
    FD_TRY(Survey survey, decode_survey(part));
    surveys.push_back(std::move(survey));
  }
  FD_TRY(Survey together, union_of(surveys));
  if (!together.claims.empty() && together.claims.back() > ctx.attempt) {
    return Error{
        .code = Code::fenced,
        .message = fmt::format("attempt {} has begun: attempt {} is over", together.claims.back(), ctx.attempt)};
  }
  return together;
}

// To a temporary name first: a torn record would hide every checkpoint.
Status Protocol::record_seen(const CheckpointContext& ctx, const std::vector<CheckpointId>& accepted) {
  FileSystem& files = ctx.parts.files;
  const std::string name = std::to_string(ctx.attempt) + ".seen";
  const std::string temporary = path_in(directory::tmp, name);
  FD_TRY_VOID(write_synced(files, temporary, encode_seen({.attempt = ctx.attempt, .accepted = accepted})));
  FD_TRY_VOID(files.rename(temporary, path_in(directory::attempts, name)));
  return files.sync_directory(directory::attempts);
}

}  // namespace firedrill
