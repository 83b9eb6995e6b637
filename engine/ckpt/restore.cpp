// Restore: read, check and put together on every rank; swapped in only when all have succeeded.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/protocol.h"
#include "engine/ckpt/restore_plan.h"
#include "engine/ckpt/structure.h"
#include "engine/ckpt/wire.h"

namespace firedrill {
namespace {

Result<Value> read_planned(FileSystem& files, const ManifestView& manifest, const RestorePlan& plan) {
  const std::string_view directory = manifest.text(manifest.head().directory);
  std::vector<Value> reads;
  reads.reserve(plan.reads().size());
  std::string path = path_in(directory, "");
  std::unique_ptr<File> file;
  std::int64_t opened = -1;
  for (const ReadRecord& read : plan.reads()) {
    const std::string_view name = manifest.text(manifest.shards()[static_cast<std::size_t>(read.shard)].name);
    if (opened != read.shard) {
      path.resize(directory.size() + 1);
      path += name;
      FD_TRY(file, files.open(path));
      opened = read.shard;
    }
    FD_TRY(Value bytes, file->read(read.offset, read.size));
    if (static_cast<std::int64_t>(bytes.size()) != read.size) {
      return Error{.code = Code::corrupted,
                   .message = fmt::format("checkpoint {}: {} of {} bytes read at {} of {}", to_string(manifest.id()),
                                          bytes.size(), read.size, read.offset, name)};
    }
    reads.push_back(std::move(bytes));
  }
  return Value::pack(reads);
}

struct Assembled {
  RestorePlan plan;
  Value groups;
};

Result<Assembled> assemble_state(const CheckpointContext& ctx, const ManifestView& manifest, const Value& structure) {
  Assembled assembled;
  FD_TRY(assembled.plan, plan_restore(ctx.parts.compute, manifest, structure));
  FD_TRY(const Value reads, read_planned(ctx.parts.files, manifest, assembled.plan));
  FD_TRY(assembled.groups, assemble(ctx.parts.compute, manifest, assembled.plan, structure, reads));
  return assembled;
}

Value encode_taken(int rank, const RestorePlan& plan) {
  WireWriter out;
  out.number(word_of(rank, true));
  const auto taken = plan.taken();
  out.raw({reinterpret_cast<const char*>(taken.data()), taken.size()});
  return out.value();
}

// A tensor that no rank takes would be lost in silence.
Status all_taken(const ManifestView& manifest, const Value& given) {
  const auto tensors = manifest.tensors();
  std::vector<std::byte> taken(tensors.size());
  for (const Value& part : given.parts()) {
    const auto says = part.bytes().subspan(std::min(sizeof(std::uint64_t), part.size()));
    for (std::size_t t = 0; t < std::min(says.size(), taken.size()); ++t) taken[t] |= says[t];
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (taken[t] != std::byte{0}) continue;
    return Error{.code = Code::mismatch,
                 .message = fmt::format("checkpoint {} holds {}, which nothing in this job takes",
                                        to_string(manifest.id()), describe_tensor(manifest, tensors[t])),
                 .hint = "resume with the program and the job that wrote the checkpoint"};
  }
  return {};
}

}  // namespace

Status Protocol::restored(const CheckpointContext&, const FindResult&, StateView&) { return {}; }

Status Protocol::restore(const CheckpointContext& ctx, const FindResult& found, StateView& into) {
  FD_CHECK(found.chosen && found.manifest, "restore without a checkpoint found");
  const PhaseScope phase(ctx.parts.position, Phase::restore);
  const CheckpointId id = *found.chosen;
  const auto assembled = assemble_state(ctx, found.manifest, structure_of(into));
  if (!assembled && ends_the_call(assembled.error())) return assembled.error();
  const int me = ctx.world.me;
  FD_TRY(const Agreed all, agree(ctx, "checkpoint.restore",
                                 assembled ? encode_taken(me, assembled->plan) : encode_error(me, assembled.error())));
  if (all.failure) return *all.failure;
  FD_TRY_VOID(all_taken(found.manifest, all.all));
  if (!found.validated) {
    Value word;
    if (ctx.coordinator()) {
      const Status marked = mark_validated(ctx, id);
      if (!marked && ends_the_call(marked.error())) return marked.error();
      if (marked) {
        emit(ctx.parts.observer, ctx.parts.position,
             {.kind = EventKind::validated,
              .step = id.step,
              .a = id.trial,
              .name = ctx.parts.observer.intern(to_string(id))});
      }
      word = encode_status(ctx.world.me, marked);
    }
    FD_TRY(const Agreed told, tell_all(ctx, "checkpoint.validated", word));
    if (told.failure) return *told.failure;
    remember(id, Known::Standing::validated);
  }
  // In place: to copy the list costs more than all the rest of this. What was there comes back if this fails.
  std::vector<Value> before;
  before.reserve(into.size());
  for (std::size_t g = 0; g < into.size(); ++g) {
    before.push_back(std::exchange(into[g].value, assembled->groups[g]));
  }
  if (Status taken = restored(ctx, found, into); !taken) {
    for (std::size_t g = 0; g < before.size(); ++g) into[g].value = before[g];
    return taken;
  }
  const Digest digest = digest_of_state(into);
  describe_state(ctx.parts.observer, into, digest);
  emit(ctx.parts.observer, ctx.parts.position,
       {.kind = EventKind::restored,
        .step = id.step,
        .a = id.step,
        .b = id.attempt,
        .c = id.trial,
        .name = ctx.parts.observer.intern(to_string(id)),
        .digest = digest});
  return {};
}

}  // namespace firedrill
