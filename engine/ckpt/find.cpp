// Find: all ranks agree on one checkpoint, or on that there is none. Every branch is taken on what an exchange gave to
// all, so every rank takes the same.
#include <fmt/format.h>

#include <algorithm>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/protocol.h"
#include "engine/ckpt/survey.h"

namespace firedrill {
namespace {

constexpr int looks_max = 3;    // at a candidate that reads differently each time
constexpr int surveys_max = 6;  // for a manifest that may only be late

// What each rank said of a candidate; absent: whole.
using Verdicts = std::vector<std::optional<Error>>;

Result<Verdicts> gather(const CheckpointContext& ctx, std::string_view purpose, const Value& mine) {
  FD_TRY(const Agreed all, agree(ctx, purpose, mine));
  Verdicts verdicts;
  const auto parts = all.all.parts();
  verdicts.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    verdicts.push_back(error_in(parts[i], ctx.world.ranks[i], ctx.world.size()));
  return verdicts;
}

// The first rank whose verdict is such an error; -1 if there is none.
template <class Predicate>
int first_with(const Verdicts& verdicts, Predicate predicate) {
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (verdicts[i] && predicate(*verdicts[i])) return static_cast<int>(i);
  }
  return -1;
}

bool is_missing(const Error& error) { return error.code == Code::not_found; }
// A missing shard is damage, which verify marks as one that another look may not find.
bool may_be_late(const Error& error) { return is_missing(error) || (is_damage(error) && error.retryable); }
bool is_other(const Error& error) { return !is_damage(error) && !is_missing(error); }

Event about(EventKind kind, const CheckpointId& id, NameId name, NameId detail = 0) {
  return {.kind = kind, .a = id.step, .b = id.attempt, .c = id.trial, .name = name, .detail = detail};
}

// What is damaged; and in an attempt that starts below the floor, what earlier ones have marked and stands for that:
// who marked it may have died before the mark was durable, or before it could say so.
std::vector<Damage> to_reject(const CheckpointContext& ctx, const Survey& survey, const FindResult& found) {
  std::vector<Damage> damaged = found.damaged;
  if (found.chosen->step >= ctx.floor) return damaged;
  for (const CheckpointId& id : survey.rejected) {
    if (id.step == ctx.floor) damaged.push_back({.id = id, .what = "an earlier attempt has marked it"});
  }
  return damaged;
}

// The marks that retention will count on: of the newest ones that are accepted.
std::vector<CheckpointId> marks_to_keep(const CheckpointContext& ctx, const Survey& survey, const FindResult& found) {
  std::vector<CheckpointId> marks;
  for (const CheckpointId& id : found.accepted) {
    if (std::ssize(marks) >= ctx.job.checkpoint.keep_validated) break;
    if (std::find(survey.validated.begin(), survey.validated.end(), id) != survey.validated.end()) marks.push_back(id);
  }
  return marks;
}

}  // namespace

Status Protocol::settle(const CheckpointContext& ctx, const CheckpointId& id,
                        const std::vector<CheckpointId>& validated) {
  FileSystem& files = ctx.parts.files;
  FD_TRY_VOID(files.sync_directory(shard_directory(id)));
  FD_TRY_VOID(files.sync_directory(directory::shards));
  return catalog_for(ctx.job, ctx.parts.compute).settle(files, id, validated);
}

Status Protocol::reject(const CheckpointContext& ctx, const std::vector<Damage>& damaged) {
  Observer& observer = ctx.parts.observer;
  for (const Damage& damage : damaged) {
    FD_TRY_VOID(catalog_for(ctx.job, ctx.parts.compute).mark_rejected(ctx.parts.files, damage.id));
    emit(observer, ctx.parts.position,
         about(EventKind::rejected, damage.id, observer.intern(to_string(damage.id)), observer.intern(damage.what)));
  }
  return {};
}

// Absent: whole on all ranks, and `manifest` is set. Else confirmed damage. The Result's error: neither.
Result<std::optional<Damage>> Protocol::judge(const CheckpointContext& ctx, const CheckpointId& id,
                                              ManifestView& manifest) {
  FileSystem& files = ctx.parts.files;
  const ExpectedRun expectation{.identity = ctx.identity, .job = ctx.job};
  const Scope share{.share = ctx.world.me, .shares = ctx.world.size()};
  const Duration patience = ctx.job.cluster.deadline / 2;
  const Time patience_end = ctx.parts.clock.now() + patience;
  Duration pause = patience / 64;
  const auto look = [&](const Scope& scope) -> Result<Value> {
    auto seen = verify(files, ctx.parts.compute, expectation, id, scope);
    if (seen) {
      manifest = *std::move(seen);
      return encode_ok(ctx.world.me);
    }
    Error error = std::move(seen).error();
    if (ends_the_call(error)) return error;
    error.retryable = may_be_late(error) && ctx.parts.clock.now() < patience_end;
    return encode_error(ctx.world.me, error);
  };
  for (int looks = 0; looks < looks_max;) {
    FD_TRY(const Value mine, look(share));
    FD_TRY(const Verdicts verdicts, gather(ctx, "checkpoint.verify", mine));
    if (const int other = first_with(verdicts, is_other); other >= 0) return *verdicts[static_cast<std::size_t>(other)];
    const int over = first_with(verdicts, [](const Error& error) { return is_missing(error) && !error.retryable; });
    if (over >= 0) {
      return Error{.code = Code::unavailable,
                   .message = fmt::format("checkpoint {} is listed, but its manifest cannot be opened: {}",
                                          to_string(id), verdicts[static_cast<std::size_t>(over)]->message),
                   .retryable = true};
    }
    // What is not there may only be late: all wait for it, a little longer each time.
    if (first_with(verdicts, [](const Error& error) { return error.retryable; }) >= 0) {
      FD_TRY_VOID(ctx.parts.clock.sleep_until(ctx.parts.clock.now() + pause));
      pause *= 2;
      continue;
    }
    const int reporter = first_with(verdicts, is_damage);
    if (reporter < 0) return std::optional<Damage>();

    // Another rank looks, and the one that complained looks again, both past their caches.
    const int confirmer = reader_of(ctx.job, ctx.world.size(), reporter);
    Value again = encode_ok(ctx.world.me);
    if (ctx.world.me == reporter || ctx.world.me == confirmer) {
      FD_TRY(again, look(Scope{.drop_caches = true}));
    }
    FD_TRY(const Verdicts second, gather(ctx, "checkpoint.confirm", again));
    const auto insists = [&second](int rank) -> const Error* {
      const auto& verdict = second[static_cast<std::size_t>(rank)];
      return verdict && is_damage(*verdict) ? &*verdict : nullptr;
    };
    // If it reads well now for the one that complained, each of the two may have met a passing error of its own.
    if (insists(reporter) && insists(confirmer)) {
      return std::optional(Damage{.id = id, .what = insists(confirmer)->message});
    }
    if (const int other = first_with(second, is_other); other >= 0) return *second[static_cast<std::size_t>(other)];
    if (const Error* insisted = insists(reporter)) {
      return Error{.code = Code::unavailable,
                   .message = fmt::format("checkpoint {}: {}; but rank {} reads it well", to_string(id),
                                          insisted->message, ctx.world.ranks[static_cast<std::size_t>(confirmer)]),
                   .retryable = true};
    }
    ++looks;
  }
  return Error{.code = Code::unavailable,
               .message = fmt::format("checkpoint {} reads differently each time", to_string(id)),
               .retryable = true};
}

// Never a silent start from step 0, nor from below what was acknowledged.
Status Protocol::allow_start(const CheckpointContext& ctx, const Survey& survey, const FindResult& result) const {
  if (!result.chosen) {
    if (!result.damaged.empty()) {
      return Error{.code = Code::corrupted,
                   .message = fmt::format("none of the {} checkpoints listed is whole; the newest, {}: {}",
                                          result.damaged.size(), to_string(result.damaged.front().id),
                                          result.damaged.front().what),
                   .hint = "nothing was changed: repair the storage, or begin in a new directory"};
    }
    if (!survey.rejected.empty()) {
      return Error{.code = Code::corrupted,
                   .message = fmt::format("only rejected checkpoints are left; the newest is {}",
                                          to_string(survey.rejected.front())),
                   .hint = "repair the storage, or begin in a new directory"};
    }
    if (ctx.floor > 0) {
      return Error{.code = Code::mismatch,
                   .message = fmt::format("step {} was acknowledged, but no checkpoint is listed", ctx.floor),
                   .hint = "is this the right directory, and is all of it mounted?"};
    }
    return {};
  }
  if (result.chosen->step >= ctx.floor) return {};
  // Only the loss of the acknowledged step itself excuses: damage to a newer one, which nobody was promised, does not.
  const auto excuses = [&ctx](const CheckpointId& id) { return id.step == ctx.floor; };
  const bool excused =
      std::any_of(result.damaged.begin(), result.damaged.end(), [&](const Damage& d) { return excuses(d.id); }) ||
      std::any_of(survey.rejected.begin(), survey.rejected.end(), excuses);
  if (excused) return {};
  return Error{.code = Code::mismatch,
               .message = fmt::format("step {} was acknowledged, but the newest checkpoint is {}", ctx.floor,
                                      to_string(*result.chosen)),
               .hint = "is this the right directory, and is all of it mounted?"};
}

void Protocol::remember(const Survey& survey, const FindResult& result) {
  known_.clear();
  const auto in = [](const std::vector<CheckpointId>& ids, const CheckpointId& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  for (const CheckpointId& id : survey.manifests) {
    Known::Standing standing = Known::Standing::dropped;
    if (in(result.accepted, id)) {
      standing = in(survey.validated, id) ? Known::Standing::validated : Known::Standing::committed;
    }
    remember(id, standing);
  }
  sweep_due_ = survey.claims.size() > 1;
  buried_before_ = survey.tombstones;
}

Result<FindResult> Protocol::find(const CheckpointContext& ctx) {
  const PhaseScope phase(ctx.parts.position, Phase::find);
  Observer& observer = ctx.parts.observer;
  FD_TRY(Survey survey, agree_on_survey(ctx));
  // A manifest that nobody lists although it was validated may only be late.
  Duration pause = ctx.job.cluster.deadline / 128;
  for (int looks = 0; looks < surveys_max && !lost_manifests(survey).empty(); ++looks, pause *= 2) {
    FD_TRY_VOID(ctx.parts.clock.sleep_until(ctx.parts.clock.now() + pause));
    FD_TRY(survey, agree_on_survey(ctx));
  }
  FindResult result;
  const auto take_damage = [&](Damage damage) {
    if (ctx.coordinator()) {
      emit(observer, ctx.parts.position,
           about(EventKind::damage, damage.id, observer.intern(to_string(damage.id)), observer.intern(damage.what)));
    }
    result.damaged.push_back(std::move(damage));
  };
  for (const CheckpointId& id : lost_manifests(survey)) take_damage({.id = id, .what = "its manifest is gone"});
  const std::vector<CheckpointId> ids = candidates(survey);
  for (auto at = ids.begin(); at != ids.end(); ++at) {
    FD_TRY(std::optional<Damage> damage, judge(ctx, *at, result.manifest));
    if (!damage) {
      result.chosen = *at;
      result.accepted.assign(at, ids.end());
      break;
    }
    take_damage(*std::move(damage));
  }
  FD_TRY_VOID(allow_start(ctx, survey, result));
  if (result.chosen) {
    result.validated =
        std::find(survey.validated.begin(), survey.validated.end(), *result.chosen) != survey.validated.end();
  }
  Value word;
  if (ctx.coordinator()) {
    Status settled;
    if (result.chosen) settled = settle(ctx, *result.chosen, marks_to_keep(ctx, survey, result));
    if (settled && result.chosen) settled = reject(ctx, to_reject(ctx, survey, result));
    if (settled) settled = record_seen(ctx, result.accepted);
    if (!settled && ends_the_call(settled.error())) return settled.error();
    word = encode_status(ctx.world.me, settled);
  }
  FD_TRY(const Agreed told, tell_all(ctx, "checkpoint.found", word));
  if (told.failure) return *told.failure;
  remember(survey, result);
  if (!result.chosen) {
    emit(observer, ctx.parts.position, {.kind = EventKind::found, .a = -1});
    emit(observer, ctx.parts.position, {.kind = EventKind::started_fresh});
    return result;
  }
  const NameId marked = result.validated ? observer.intern("validated") : NameId{0};  // durably, by now
  emit(observer, ctx.parts.position,
       about(EventKind::found, *result.chosen, observer.intern(to_string(*result.chosen)), marked));
  if (!result.manifest || !ctx.coordinator()) return result;
  const std::string_view numerics = result.manifest.text(result.manifest.head().numerics);
  if (numerics != ctx.identity.numerics_key) {
    const std::string text = fmt::format("checkpoint {} was computed with numerics {}, this attempt has {}",
                                         to_string(*result.chosen), numerics, ctx.identity.numerics_key);
    emit(observer, ctx.parts.position, {.kind = EventKind::note, .name = observer.intern(text)});
  }
  return result;
}

}  // namespace firedrill
