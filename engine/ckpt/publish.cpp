// Publishing: tries, each of three parts (shards, commit, validation), each part ended by an exchange that makes one
// rank's error everybody's.
#include <fmt/format.h>

#include <algorithm>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/protocol.h"
#include "engine/ckpt/shard.h"
#include "engine/ckpt/structure.h"

namespace firedrill {
namespace {

constexpr std::int64_t manifest_room = std::int64_t{1} << 16;

void emit_failure(const CheckpointContext& ctx, const CheckpointId& id, const Error& error, bool whole_publish) {
  Observer& observer = ctx.parts.observer;
  emit(observer, ctx.parts.position,
       {.kind = EventKind::save_failed,
        .step = id.step,
        .a = id.trial,
        .b = whole_publish ? 1 : 0,
        .c = error.injected ? 1 : 0,
        .name = observer.intern(error.message),
        .detail = observer.intern(to_string(error.code))});
}

void emit_about(const CheckpointContext& ctx, EventKind kind, const CheckpointId& id, std::string_view name = {},
                const Digest& digest = {}, std::int64_t size = 0) {
  Observer& observer = ctx.parts.observer;
  emit(observer, ctx.parts.position,
       {.kind = kind,
        .step = id.step,
        .a = id.trial,
        .b = size,
        .name = name.empty() ? NameId{0} : observer.intern(name),
        .digest = digest});
}

// A new directory may help; a bug of ours stays.
bool worth_another_try(const Error& error) { return error.code != Code::internal && error.code != Code::invalid_input; }

// Others may know nothing of it, and wait.
Error of_one_rank(Error error) {
  error.retryable = false;
  return error;
}

}  // namespace

struct Protocol::Try {
  CheckpointId id;
  const StateView& snapshot;
  const Digest& state_digest;
  std::string name;       // of the id
  std::string directory;  // of the shards
  Value reports;          // of all ranks
  Digest manifest;        // of its text
  bool opened = false;    // the directory is this try's own
  bool rename_issued = false;
  std::string tagged = {};

  // Of this try's exchanges: a rank that is in another try than its peers must not meet them unnoticed.
  std::string_view purpose(std::string_view what) {
    if (id.trial == 1) return what;
    tagged = fmt::format("{}.{}", what, id.trial);
    return tagged;
  }
};

StateView Protocol::as_saved(StateView list) const { return list; }

const Value& Protocol::structure_of(const StateView& state) {
  if (!structure_value_ || !same_structure(structure_, state)) {
    structure_ = structure_only(state);
    structure_value_ = encode_structure(as_saved(structure_));
  }
  return structure_value_;
}

Result<Publication> Protocol::publish(const CheckpointContext& ctx, std::int64_t step, const StateView& snapshot,
                                      const Digest& state_digest) {
  if (step != last_step_) last_trial_ = 0;
  last_step_ = step;
  for (int tries = 1;; ++tries) {
    const CheckpointId id{.step = step, .attempt = ctx.attempt, .trial = ++last_trial_};
    Try current{.id = id,
                .snapshot = snapshot,
                .state_digest = state_digest,
                .name = to_string(id),
                .directory = shard_directory(id)};
    Result<std::optional<Error>> ended = run_try(ctx, current);
    if (!ended) return of_one_rank(std::move(ended).error());
    const std::optional<Error>& failure = *ended;
    if (!failure) {
      emit_about(ctx, EventKind::acknowledged, id, current.name, state_digest);
      Publication publication{.id = id, .tries = tries};
      if (!ctx.coordinator()) return publication;
      remember(id, Known::Standing::validated);
      const PhaseScope phase(ctx.parts.position, Phase::retire);
      if (Status kept = retain(ctx); !kept) {
        if (ends_the_call(kept.error())) return of_one_rank(std::move(kept).error());
        emit_failure(ctx, id, kept.error(), false);
        publication.retention_error = std::move(kept).error();
      }
      return publication;
    }
    if (ctx.coordinator()) {
      if (Status cleaned = clean_up(ctx, current); !cleaned) return of_one_rank(std::move(cleaned).error());
    }
    if (tries == tries_max || !worth_another_try(*failure)) {
      emit_failure(ctx, id, *failure, true);
      Error error = *failure;
      error.retryable = worth_another_try(*failure);
      error.message = fmt::format("step {} could not be saved in {} tries: {}", step, tries, failure->message);
      return error;
    }
  }
}

Result<std::optional<Error>> Protocol::run_try(const CheckpointContext& ctx, Try& current) {
  FD_TRY(std::optional<Error> failure, save_shards(ctx, current));
  if (failure) return failure;
  FD_TRY(failure, commit_try(ctx, current));
  if (failure) return failure;
  return validate_try(ctx, current);
}

Result<std::optional<Error>> Protocol::save_shards(const CheckpointContext& ctx, Try& current) {
  const PhaseScope phase(ctx.parts.position, Phase::save);
  emit_about(ctx, EventKind::save_started, current.id);
  const EncodeScalars scalars{.step = current.id.step,
                              .attempt = static_cast<std::int32_t>(current.id.attempt),
                              .trial = static_cast<std::int32_t>(current.id.trial),
                              .rank = ctx.world.me,
                              .world = ctx.world.size(),
                              .job = ctx.identity.job_digest};
  auto encoded =
      encode_shards(ctx.parts.compute, scalars, structure_of(current.snapshot), ctx.identity.run, current.snapshot);
  if (!encoded && ends_the_call(encoded.error())) return encoded.error();
  Value word;
  if (ctx.coordinator()) {
    Status opened;
    if (encoded) {
      std::int64_t bytes = manifest_room;
      for (const Value& shard : encoded->shards) bytes += static_cast<std::int64_t>(shard.size()) * scalars.world;
      opened = open_try(ctx, current.directory, bytes);
      current.opened = !opened.failed_with(Code::already_exists);
      if (!opened && ends_the_call(opened.error())) return opened.error();
      if (!opened) emit_failure(ctx, current.id, opened.error(), false);
    }
    word = encode_status(ctx.world.me, opened);
  }
  FD_TRY(const Agreed opened, tell_all(ctx, current.purpose("checkpoint.open"), word));
  if (opened.failure) return opened.failure;

  Status written;
  if (!encoded) written = encoded.error();
  for (std::size_t kind = 0; kind < shard_kind_count && written; ++kind) {
    const Value& bytes = encoded->shards[kind];
    const std::string path = path_in(current.directory, shard_name(static_cast<ShardKind>(kind), ctx.world.me));
    written = write_shard(ctx, path, bytes);
    if (written) {
      emit_about(ctx, EventKind::shard_written, current.id, path, bytes.digest(),
                 static_cast<std::int64_t>(bytes.size()));
    }
  }
  if (written) written = ctx.parts.files.sync_directory(current.directory);
  if (!written) {
    if (ends_the_call(written.error())) return written.error();
    emit_failure(ctx, current.id, written.error(), false);
  }
  FD_TRY(const Agreed all, agree(ctx, current.purpose("checkpoint.shards"),
                                 written ? encoded->report : encode_error(ctx.world.me, written.error())));
  current.reports = all.all;
  return all.failure;
}

Result<std::optional<Error>> Protocol::commit_try(const CheckpointContext& ctx, Try& current) {
  const PhaseScope phase(ctx.parts.position, Phase::commit);
  Value word;
  if (ctx.coordinator()) {
    const ManifestScalars scalars{.step = current.id.step,
                                  .attempt = static_cast<std::int32_t>(current.id.attempt),
                                  .trial = static_cast<std::int32_t>(current.id.trial),
                                  .ranks_per_node = ctx.job.cluster.ranks_per_node,
                                  .state = current.state_digest};
    auto text = build_manifest(ctx.parts.compute, scalars, ctx.identity.encoded, Value::copy_of(current.directory),
                               current.reports);
    Status committed;
    if (text) {
      committed = commit(ctx, current.id, *text, current.rename_issued);
    } else {
      committed = text.error();
    }
    if (committed) {
      emit_about(ctx, EventKind::committed, current.id, current.name);
      const Digest digest = text->digest();
      word = Value::copy_of(std::array<std::int64_t, 3>{static_cast<std::int64_t>(word_of(ctx.world.me, true)),
                                                        static_cast<std::int64_t>(digest.high),
                                                        static_cast<std::int64_t>(digest.low)});
    } else {
      if (ends_the_call(committed.error())) return committed.error();
      emit_failure(ctx, current.id, committed.error(), false);
      word = encode_error(ctx.world.me, committed.error());
    }
  }
  FD_TRY(const Agreed told, tell_all(ctx, current.purpose("checkpoint.commit"), word));
  if (told.failure) return told.failure;
  if (told.all.size() != 3 * sizeof(std::int64_t)) {
    return Error{.code = Code::corrupted, .message = "the coordinator's word on the commit is not whole"};
  }
  const auto words = told.all.as<std::int64_t>();
  current.manifest = {.high = static_cast<std::uint64_t>(words[1]), .low = static_cast<std::uint64_t>(words[2])};
  return std::optional<Error>();
}

Result<std::optional<Error>> Protocol::validate_try(const CheckpointContext& ctx, Try& current) {
  const PhaseScope phase(ctx.parts.position, Phase::validate);
  const Status restored = trial_restore(ctx, current.id, current.reports, current.manifest);
  if (!restored) {
    if (ends_the_call(restored.error())) return restored.error();
    emit_failure(ctx, current.id, restored.error(), false);
  }
  FD_TRY(const Agreed all,
         agree(ctx, current.purpose("checkpoint.trial_restore"), encode_status(ctx.world.me, restored)));
  if (all.failure) return all.failure;
  Value word;
  if (ctx.coordinator()) {
    const Status marked = mark_validated(ctx, current.id);
    if (marked) {
      emit_about(ctx, EventKind::validated, current.id, current.name);
    } else {
      if (ends_the_call(marked.error())) return marked.error();
      emit_failure(ctx, current.id, marked.error(), false);
    }
    word = encode_status(ctx.world.me, marked);
  }
  FD_TRY(const Agreed told, tell_all(ctx, current.purpose("checkpoint.validated"), word));
  return told.failure;
}

// The shards of a failed try go at once, unless its manifest may be there: then it waits for retention.
Status Protocol::clean_up(const CheckpointContext& ctx, const Try& failed) {
  const PhaseScope phase(ctx.parts.position, Phase::retire);
  if (failed.rename_issued) {
    remember(failed.id, Known::Standing::dropped);
    return {};
  }
  if (!failed.opened) return {};
  Status removed = remove_tree(ctx.parts.files, failed.directory);
  if (removed || ends_the_call(removed.error())) return removed;
  // What is left lies in nobody's way: no try uses that name again, and a later attempt sweeps it.
  emit_failure(ctx, failed.id, removed.error(), false);
  return {};
}

}  // namespace firedrill
