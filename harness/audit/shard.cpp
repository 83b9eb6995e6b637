#include <fmt/format.h>

#include <array>

#include "engine/base/bytes.h"
#include "engine/base/text.h"
#include "harness/audit/format.h"

namespace firedrill::auditing {
namespace {

constexpr std::string_view opening = "FDSHARD\n";
constexpr std::uint32_t run_size_max = 64;

Error corrupted(std::string what) { return {.code = Code::corrupted, .message = std::move(what)}; }

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string shard_file_name(std::int64_t kind, std::int64_t rank) {
  constexpr std::array<std::string_view, 3> kinds = {"model", "optimizer", "extra"};
  if (kind < 0 || kind >= std::ssize(kinds)) return fmt::format("(kind {})-{}", kind, rank);
  return std::string(kinds[static_cast<std::size_t>(kind)]).append("-").append(std::to_string(rank));
}

Result<ShardFront> decode_shard_front(std::string_view bytes) {
  ByteReader in(std::as_bytes(std::span(bytes)));
  if (text_of(in.raw(opening.size())) != opening) return corrupted("it does not begin as a shard does");
  const auto format = in.number<std::uint32_t>();
  if (format != 1) return corrupted(fmt::format("format {} is not known", format));
  ShardFront front;
  front.size = in.number<std::uint32_t>();
  front.provenance.id.step = in.number<std::int64_t>();
  front.provenance.id.attempt = in.number<std::int32_t>();
  front.provenance.id.trial = in.number<std::int32_t>();
  front.rank = in.number<std::int32_t>();
  front.world = in.number<std::int32_t>();
  front.kind = in.number<std::uint32_t>();
  const auto run_size = in.number<std::uint32_t>();
  front.provenance.job = in.digest();
  front.payload = in.number<std::int64_t>();
  if (!in.ok() || run_size > run_size_max) return corrupted("its front is cut off or its run id is too long");
  front.provenance.run = text_of(in.raw(run_size));
  in.raw((8 - run_size % 8) % 8);
  const std::size_t hashed = bytes.size() - in.left();
  const Digest said = in.digest();
  const std::size_t used = bytes.size() - in.left();
  if (!in.ok() || static_cast<std::size_t>(front.size) != used) return corrupted("its front is not as long as it says");
  if (said != digest_of(bytes.substr(0, hashed))) return corrupted("the digest of its front does not hold");
  return front;
}

Result<Accepted> decode_accepted(std::string_view text) {
  // Lines: the schema, "attempt <n>", ids, "digest <of all before>".
  constexpr std::size_t last_line = sizeof("digest ") - 1 + 32 + 1;
  if (text.size() < last_line || text.back() != '\n') return corrupted("it is cut off");
  const std::string_view body = text.substr(0, text.size() - last_line);
  const std::string_view end = text.substr(body.size());
  if (!end.starts_with("digest ") || end.substr(sizeof("digest ") - 1, 32) != digest_of(body).hex()) {
    return corrupted("its digest does not hold");
  }
  const std::vector<std::string_view> lines = split_in_place(body, '\n');  // the last is empty: each line is ended
  if (lines.size() < 3 || lines[0] != "firedrill.seen/1") return corrupted("its schema is not known");
  if (!lines[1].starts_with("attempt ")) return corrupted("it does not name its attempt");
  const auto attempt = parse_whole(lines[1].substr(sizeof("attempt ") - 1));
  if (!attempt || *attempt > INT32_MAX) return corrupted("its attempt is not a number");
  Accepted accepted{.attempt = static_cast<std::int64_t>(*attempt)};
  accepted.ids.reserve(lines.size() - 3);
  for (std::size_t i = 2; i + 1 < lines.size(); ++i) {
    const auto id = checkpoint_id_from(lines[i]);
    if (!id) return corrupted(fmt::format("\"{}\" is no checkpoint", lines[i]));
    accepted.ids.push_back(*id);
  }
  return accepted;
}

}  // namespace firedrill::auditing
