#include "engine/ckpt/agree.h"

#include <fmt/format.h>

#include "engine/ckpt/wire.h"

namespace firedrill {

bool ends_the_call(const Error& error) {
  return error.code == Code::dead || error.code == Code::fenced || error.code == Code::aborted;
}

bool is_damage(const Error& error) { return error.code == Code::corrupted || error.code == Code::io_error; }

Value encode_ok(int rank) {
  const std::uint64_t ok = word_of(rank, true);
  return Value::copy_of(DType::u8, Shape{static_cast<std::int64_t>(sizeof(ok))}, std::as_bytes(std::span(&ok, 1)));
}

Value encode_error(int rank, const Error& error) {
  WireWriter out;
  out.number(word_of(rank, false));
  out.number(static_cast<std::uint32_t>(error.code));
  out.number(static_cast<std::uint8_t>(error.retryable ? 1 : 0));
  out.number(static_cast<std::uint8_t>(error.injected ? 1 : 0));
  out.text(error.message);
  out.text(error.hint);
  return out.value();
}

Value encode_status(int rank, const Status& status) {
  return status ? encode_ok(rank) : encode_error(rank, status.error());
}

std::optional<Error> error_in(const Value& given, int rank, int ranks) {
  if (!given || given.is_pack()) {
    return Error{.code = Code::corrupted, .message = fmt::format("rank {} gave nothing", rank)};
  }
  WireReader in(given.text());
  const auto word = in.number<std::uint64_t>();
  if (in.ok() && word == word_of(rank, true)) return std::nullopt;
  const std::uint64_t whose = word >> 1;  // from 1 on
  if (in.ok() && word != word_of(rank, false) && whose >= 1 && whose <= static_cast<std::uint64_t>(ranks)) {
    return Error{.code = Code::mismatch,
                 .message = fmt::format("in the place of what rank {} gives stands what another rank gave", rank)};
  }
  Error error;
  error.code = static_cast<Code>(in.number<std::uint32_t>());
  error.retryable = in.number<std::uint8_t>() != 0;
  error.injected = in.number<std::uint8_t>() != 0;
  error.message = in.text();
  error.hint = in.text();
  if (!in.at_end() || word != word_of(rank, false) || error.code > Code::internal) {
    return Error{.code = Code::corrupted, .message = fmt::format("what rank {} gave is not whole", rank)};
  }
  error.message = fmt::format("rank {}: {}", rank, error.message);
  return error;
}

Result<Agreed> agree(const CheckpointContext& ctx, std::string_view purpose, const Value& mine) {
  Agreed result;
  FD_TRY(result.all, ctx.parts.collectives.all_gather(ctx.world, mine, ctx.call(purpose)));
  const auto parts = result.all.parts();
  for (std::size_t i = 0; i < parts.size() && !result.failure; ++i) {
    result.failure = error_in(parts[i], ctx.world.ranks[i], ctx.world.size());
  }
  return result;
}

Result<Agreed> tell_all(const CheckpointContext& ctx, std::string_view purpose, const Value& of_coordinator) {
  Agreed result;
  FD_TRY(result.all, ctx.parts.collectives.broadcast(ctx.world, of_coordinator, 0, ctx.call(purpose)));
  result.failure = error_in(result.all, ctx.world.ranks[0], ctx.world.size());
  return result;
}

int reader_of(const Job& job, int world, int owner) {
  if (world <= job.cluster.ranks_per_node) return (owner + 1) % world;
  int reader = (owner + job.cluster.ranks_per_node) % world;
  while (node_of(job, reader) == node_of(job, owner)) reader = (reader + 1) % world;
  return reader;
}

}  // namespace firedrill
