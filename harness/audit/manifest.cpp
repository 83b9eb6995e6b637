#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "engine/base/json_tree.h"
#include "harness/audit/format.h"

namespace firedrill::auditing {
namespace {

constexpr std::int64_t number_max = std::int64_t{1} << 48;
constexpr std::size_t dimensions_max = 4;
constexpr std::string_view digest_opening = "\"digest\":\"";
constexpr std::string_view digest_closing = "\"}\n";
constexpr std::size_t digest_digits = 32;

Error corrupted(std::string what) { return {.code = Code::corrupted, .message = std::move(what)}; }

std::int64_t width_of(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> widths = {
      {{"u8", 1}, {"i32", 4}, {"i64", 8}, {"f32", 4}, {"bf16", 2}, {"f16", 2}}};
  for (const auto& [name, width] : widths) {
    if (name == dtype) return width;
  }
  return 0;
}

// The manifest ends with the digest of all that stands before it.
Status check_digest(std::string_view text) {
  constexpr std::size_t tail = digest_opening.size() + digest_digits + digest_closing.size();
  if (text.size() < tail) return corrupted("it is cut off");
  const std::string_view body = text.substr(0, text.size() - tail);
  const std::string_view last = text.substr(body.size());
  if (!last.starts_with(digest_opening) || !last.ends_with(digest_closing)) return corrupted("it is cut off");
  const auto said = Digest::from_hex(last.substr(digest_opening.size(), digest_digits));
  const Digest is = digest_of(body);
  if (!said || *said != is) return corrupted(fmt::format("its digest is {}, it says otherwise", is.hex()));
  return {};
}

// Reads values of the one JSON object; the first mistake stays, and what follows reads as empty.
class Decoder {
 public:
  explicit Decoder(JsonValue body) : body_(body) {}

  Result<Manifest> decode() {
    Manifest manifest;
    if (const std::string_view schema = text(body_, "schema"); ok() && schema != "firedrill.manifest/1") {
      wrong_ = fmt::format("schema {} is not known", schema);
    }
    if (const std::int64_t format = number(body_, "format"); ok() && format != 1) {
      wrong_ = fmt::format("format {} is not known", format);
    }
    const JsonValue provenance = member(body_, "provenance");
    manifest.provenance = {.run = std::string(text(provenance, "run")),
                           .job = digest(member(provenance, "job"), "job"),
                           .id = {.step = number(provenance, "step"),
                                  .attempt = number(provenance, "attempt"),
                                  .trial = number(provenance, "try")}};
    manifest.layout = text(body_, "layout");
    manifest.software = text(body_, "software");
    manifest.numerics = text(body_, "numerics");
    manifest.corpus = digest(member(body_, "corpus"), "corpus");
    manifest.world = number(body_, "world");
    manifest.directory = text(body_, "directory");
    decode_tensors(manifest);
    decode_shards(manifest);
    if (!ok()) return corrupted(wrong_);
    return manifest;
  }

 private:
  bool ok() const { return wrong_.empty(); }
  void fail(std::string what) {
    if (ok()) wrong_ = std::move(what);
  }

  JsonValue member(JsonValue object, std::string_view key) {
    if (const auto found = object.member(key)) return *found;
    fail(fmt::format("{} is missing", key));
    return {};
  }
  JsonValue list(JsonValue object, std::string_view key) {
    const JsonValue value = member(object, key);
    if (!value.is_list()) fail(fmt::format("{} is not a list", key));
    return value;
  }
  std::string_view text(JsonValue object, std::string_view key) {
    const JsonValue value = member(object, key);
    if (!value.is_text()) fail(fmt::format("{} is not a text", key));
    return value.text();
  }
  std::int64_t number(JsonValue object, std::string_view key) { return number_in(member(object, key), key); }
  std::int64_t number_in(JsonValue value, std::string_view what) {
    if (value.is_whole() && value.whole() <= static_cast<std::uint64_t>(number_max)) {
      return static_cast<std::int64_t>(value.whole());
    }
    fail(fmt::format("{} is not a whole number from 0 to 2^48", what));
    return 0;
  }
  Digest digest(JsonValue value, std::string_view what) {
    if (const auto found = Digest::from_hex(value.text())) return *found;
    fail(fmt::format("{} is not a digest", what));
    return {};
  }

  void decode_tensors(Manifest& manifest) {
    std::set<std::string_view> names;
    for (const JsonValue entry : list(body_, "tensors")) {
      Tensor tensor{.name = std::string(text(entry, "name")), .dtype = std::string(text(entry, "dtype")), .count = 1};
      tensor.width = width_of(tensor.dtype);
      if (tensor.width == 0) fail(fmt::format("tensor {} has type {}, which is not known", tensor.name, tensor.dtype));
      if (!names.insert(text(entry, "name")).second) fail(fmt::format("tensor {} is listed twice", tensor.name));
      for (const JsonValue size : list(entry, "shape")) {
        tensor.shape.push_back(number_in(size, "a dimension"));
        if (tensor.shape.back() != 0 && tensor.count > number_max / tensor.shape.back()) {
          fail(fmt::format("tensor {} has too many elements", tensor.name));
        } else {
          tensor.count *= tensor.shape.back();
        }
      }
      if (tensor.shape.size() > dimensions_max) fail(fmt::format("tensor {} has too many dimensions", tensor.name));
      if (!ok()) return;
      manifest.tensors.push_back(std::move(tensor));
    }
  }

  void decode_shards(Manifest& manifest) {
    for (const JsonValue entry : list(body_, "shards")) {
      Shard shard{.name = std::string(text(entry, "name")),
                  .rank = number(entry, "rank"),
                  .size = number(entry, "size"),
                  .digest = digest(member(entry, "digest"), "the digest of a shard")};
      const JsonValue pieces = list(entry, "pieces");
      shard.pieces.reserve(pieces.size());
      for (const JsonValue piece : pieces) {
        if (!ok()) return;
        decode_piece(piece, manifest, shard);
      }
      if (!ok()) return;
      manifest.shards.push_back(std::move(shard));
    }
  }

  void decode_piece(JsonValue entry, const Manifest& manifest, Shard& shard) {
    if (entry.size() != 5) return fail(fmt::format("a piece in {} is not five values", shard.name));
    auto at = entry.begin();
    Piece piece;
    piece.tensor = static_cast<std::size_t>(number_in(*at, "a piece's tensor"));
    piece.begin = number_in(*++at, "a piece's begin");
    piece.end = number_in(*++at, "a piece's end");
    piece.offset = number_in(*++at, "a piece's offset");
    piece.digest = digest(*++at, "a piece's digest");
    if (!ok()) return;
    if (piece.tensor >= manifest.tensors.size()) {
      return fail(
          fmt::format("a piece in {} is of tensor {} of {}", shard.name, piece.tensor, manifest.tensors.size()));
    }
    const Tensor& tensor = manifest.tensors[piece.tensor];
    if (piece.begin >= piece.end || piece.end > tensor.count) {
      return fail(fmt::format("elements {} to {} of {} cannot be: it has {}", piece.begin, piece.end, tensor.name,
                              tensor.count));
    }
    // Both are at most 2^48 elements of 8 bytes: no overflow.
    if (piece.offset + (piece.end - piece.begin) * tensor.width > shard.size) {
      return fail(
          fmt::format("elements {} to {} of {} lie outside of {}", piece.begin, piece.end, tensor.name, shard.name));
    }
    shard.pieces.push_back(piece);
  }

  const JsonValue body_;
  std::string wrong_;
};

// Every element of every tensor is in exactly one piece.
Status check_cover(const Manifest& manifest) {
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> ranges(manifest.tensors.size());
  for (const Shard& shard : manifest.shards) {
    for (const Piece& piece : shard.pieces) ranges[piece.tensor].emplace_back(piece.begin, piece.end);
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Tensor& tensor = manifest.tensors[i];
    std::sort(ranges[i].begin(), ranges[i].end());
    std::int64_t next = 0;
    for (const auto& [begin, end] : ranges[i]) {
      if (begin < next)
        return corrupted(
            fmt::format("elements {} to {} of {} are in two pieces", begin, std::min(next, end), tensor.name));
      if (begin > next) break;
      next = end;
    }
    if (next == tensor.count) continue;
    return corrupted(fmt::format("elements of {} from {} on are in no piece", tensor.name, next));
  }
  return {};
}

// Each rank has one shard of each kind, in the order of the format.
Status check_shard_list(const Manifest& manifest) {
  constexpr std::int64_t kinds = 3;
  if (std::ssize(manifest.shards) != manifest.world * kinds) {
    return corrupted(fmt::format("{} shards of {} ranks, not {} each", manifest.shards.size(), manifest.world, kinds));
  }
  for (std::int64_t i = 0; i < std::ssize(manifest.shards); ++i) {
    const Shard& shard = manifest.shards[static_cast<std::size_t>(i)];
    const std::string name = shard_file_name(i % kinds, i / kinds);
    if (shard.name == name && shard.rank == i / kinds) continue;
    return corrupted(fmt::format("shard {} is {} of rank {}, not {}", i, shard.name, shard.rank, name));
  }
  return {};
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
           return letter || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
         });
}

Result<Manifest> decode_manifest(std::string_view text) {
  FD_TRY_VOID(check_digest(text));
  const std::optional<JsonTree> body = JsonTree::of(text);
  if (!body || !body->root().is_object()) return corrupted("it is not a JSON object");
  FD_TRY(Manifest manifest, Decoder(body->root()).decode());
  FD_TRY_VOID(check_shard_list(manifest));
  FD_TRY_VOID(check_cover(manifest));
  return manifest;
}

}  // namespace firedrill::auditing
