#include "engine/ckpt/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/base/json_tree.h"
#include "engine/base/text.h"

namespace firedrill {
namespace {

static_assert(std::has_unique_object_representations_v<ManifestHead>);
static_assert(std::has_unique_object_representations_v<ShardRecord>);
static_assert(std::has_unique_object_representations_v<TensorRecord>);
static_assert(std::has_unique_object_representations_v<PieceRecord>);

constexpr std::int64_t count_max = std::int64_t{1} << 48;  // elements of a tensor, bytes of a shard

// What the text says, checked, as records. The first thing that is wrong stays; what follows it is not looked at.
class Compiler {
 public:
  Result<Value> compile(std::string_view text);

 private:
  void fail(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  bool ok() const { return wrong_.empty(); }
  JsonValue member(JsonValue object, std::string_view key);
  std::string_view text(JsonValue object, std::string_view key);
  std::int64_t number(JsonValue value, std::string_view what, std::int64_t max);
  std::int64_t whole(JsonValue object, std::string_view key, std::int64_t max);
  Digest digest(JsonValue value, std::string_view what);
  JsonValue list(JsonValue object, std::string_view key);
  TextRef keep(std::string_view text);

  void read_head(JsonValue body);
  void read_tensors(JsonValue body);
  void read_shard(JsonValue entry, std::size_t index);
  void read_piece(JsonValue piece, const ShardRecord& shard);
  void read_fields(JsonValue body);
  void check_cover();
  template <class Record>
  static Value value_of(std::span<const Record> records) {
    return Value::copy_of(DType::u8, Shape{static_cast<std::int64_t>(records.size_bytes())}, std::as_bytes(records));
  }

  std::string wrong_;
  ManifestHead head_;
  std::vector<ShardRecord> shards_;
  std::vector<TensorRecord> tensors_;
  std::vector<PieceRecord> pieces_;
  std::vector<FieldRecord> fields_;
  std::string pool_;
};

Error damaged(std::string what) { return Error{.code = Code::corrupted, .message = fmt::format("manifest: {}", what)}; }

JsonValue Compiler::member(JsonValue object, std::string_view key) {
  const auto found = object.member(key);
  if (!found) fail(fmt::format("`{}` is missing", key));
  return found.value_or(JsonValue());
}

std::string_view Compiler::text(JsonValue object, std::string_view key) {
  const JsonValue value = member(object, key);
  if (!value.is_text()) fail(fmt::format("`{}` is not a text", key));
  return value.text();
}

std::int64_t Compiler::number(JsonValue value, std::string_view what, std::int64_t max) {
  if (!value.is_whole() || value.whole() > static_cast<std::uint64_t>(max)) {
    fail(fmt::format("`{}` is not a whole number up to {}", what, max));
    return 0;
  }
  return static_cast<std::int64_t>(value.whole());
}

std::int64_t Compiler::whole(JsonValue object, std::string_view key, std::int64_t max) {
  return number(member(object, key), key, max);
}

Digest Compiler::digest(JsonValue value, std::string_view what) {
  std::optional<Digest> digest;
  if (value.is_text()) digest = Digest::from_hex(value.text());
  if (!digest) fail(fmt::format("`{}` is not a digest", what));
  return digest.value_or(Digest{});
}

JsonValue Compiler::list(JsonValue object, std::string_view key) {
  const JsonValue value = member(object, key);
  if (!value.is_list()) fail(fmt::format("`{}` is not a list", key));
  return value;
}

TextRef Compiler::keep(std::string_view text) {
  const TextRef ref{.offset = static_cast<std::uint32_t>(pool_.size()),
                    .size = static_cast<std::uint32_t>(text.size())};
  pool_ += text;
  return ref;
}

void Compiler::read_head(JsonValue body) {
  const JsonValue provenance = member(body, "provenance");
  head_.step = whole(provenance, "step", count_max);
  head_.attempt = static_cast<std::int32_t>(whole(provenance, "attempt", INT32_MAX));
  head_.trial = static_cast<std::int32_t>(whole(provenance, "try", INT32_MAX));
  head_.run = keep(text(provenance, "run"));
  head_.job = digest(member(provenance, "job"), "job");
  head_.world = whole(body, "world", 1 << 20);
  head_.corpus = digest(member(body, "corpus"), "corpus");
  head_.state = digest(member(body, "state"), "state");
  head_.numerics = keep(text(body, "numerics"));
  head_.layout = keep(text(body, "layout"));
  head_.software = keep(text(body, "software"));
  const std::string_view directory = text(body, "directory");
  for (const std::string_view part : split_in_place(directory, '/')) {
    if (!is_safe_name(part)) fail(fmt::format("`directory` is {}, which may lead elsewhere", directory));
  }
  head_.directory = keep(directory);
}

void Compiler::read_tensors(JsonValue body) {
  for (const JsonValue entry : list(body, "tensors")) {
    TensorRecord tensor;
    tensor.name = keep(text(entry, "name"));
    const std::string_view dtype = text(entry, "dtype");
    tensor.dtype = -1;
    for (const DType known : {DType::u8, DType::i32, DType::i64, DType::f32, DType::bf16, DType::f16}) {
      if (dtype == to_string(known)) tensor.dtype = static_cast<std::int32_t>(known);
    }
    if (tensor.dtype < 0) fail(fmt::format("`dtype` is {}, which is not known", dtype));
    tensor.count = 1;
    for (const JsonValue size : list(entry, "shape")) {
      if (tensor.dimensions == static_cast<std::int32_t>(tensor.sizes.size())) return fail("a shape of 5 dimensions");
      const std::int64_t extent = number(size, "shape", count_max);
      if (extent > 0 && tensor.count > count_max / extent) return fail("a tensor is too large to be true");
      tensor.count *= extent;
      tensor.sizes[static_cast<std::size_t>(tensor.dimensions++)] = extent;
    }
    tensors_.push_back(tensor);
  }
}

void Compiler::read_piece(JsonValue piece, const ShardRecord& shard) {
  if (piece.size() != 5) return fail("a piece is not a list of 5");
  PieceRecord record;
  auto at = piece.begin();
  record.tensor = number(*at, "tensor", count_max);
  record.begin = number(*++at, "begin", count_max);
  record.end = number(*++at, "end", count_max);
  record.offset = number(*++at, "offset", count_max);
  record.digest = digest(*++at, "digest");
  if (record.tensor >= static_cast<std::int64_t>(tensors_.size()))
    return fail("a piece of a tensor that is not listed");
  const TensorRecord& tensor = tensors_[static_cast<std::size_t>(record.tensor)];
  const auto width = static_cast<std::int64_t>(size_of(static_cast<DType>(tensor.dtype)));
  if (record.begin > record.end || record.end > tensor.count || record.offset > shard.size ||
      record.end - record.begin > (shard.size - record.offset) / width) {
    return fail("a piece lies outside of its tensor or its file");
  }
  pieces_.push_back(record);
}

void Compiler::read_shard(JsonValue entry, std::size_t index) {
  ShardRecord shard;
  shard.rank = static_cast<std::int32_t>(index / shard_kind_count);
  shard.kind = static_cast<std::int32_t>(index % shard_kind_count);
  const std::string expected = shard_name(static_cast<ShardKind>(shard.kind), shard.rank);
  if (const std::string_view name = text(entry, "name"); name != expected) {
    return fail(fmt::format("shard {} is called {}, not {}", index, name, expected));
  }
  if (whole(entry, "rank", INT32_MAX) != shard.rank) return fail(fmt::format("{} is of another rank", expected));
  shard.name = keep(expected);
  shard.node = static_cast<std::int32_t>(whole(entry, "node", INT32_MAX));
  shard.size = whole(entry, "size", count_max);
  shard.digest = digest(member(entry, "digest"), "digest");
  shard.pieces_begin = static_cast<std::int64_t>(pieces_.size());
  for (const JsonValue piece : list(entry, "pieces")) {
    read_piece(piece, shard);
    if (!ok()) return;
  }
  shard.pieces_end = static_cast<std::int64_t>(pieces_.size());
  shards_.push_back(shard);
}

void Compiler::read_fields(JsonValue body) {
  for (const JsonValue field : list(body, "fields")) {
    const auto name = field.begin();
    if (field.size() != 2 || !(*name).is_text()) return fail("a field of the job is not a pair of texts");
    auto value = name;
    if (!(*++value).is_text()) return fail("a field of the job is not a pair of texts");
    fields_.push_back({.name = keep((*name).text()), .value = keep((*value).text())});
  }
}

// Every element of every tensor lies in exactly one piece.
void Compiler::check_cover() {
  std::vector<const PieceRecord*> sorted;
  sorted.reserve(pieces_.size());
  for (const PieceRecord& piece : pieces_) sorted.push_back(&piece);
  std::sort(sorted.begin(), sorted.end(), [](const PieceRecord* a, const PieceRecord* b) {
    return std::pair(a->tensor, a->begin) < std::pair(b->tensor, b->begin);
  });
  std::vector<std::int64_t> covered(tensors_.size(), 0);
  for (const PieceRecord* piece : sorted) {
    std::int64_t& end = covered[static_cast<std::size_t>(piece->tensor)];
    if (piece->begin != end) fail(fmt::format("pieces of a tensor have a gap or overlap at element {}", end));
    end = piece->end;
  }
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    if (covered[t] != tensors_[t].count) {
      fail(fmt::format("pieces hold {} of the {} elements of a tensor", covered[t], tensors_[t].count));
    }
  }
}

Result<Value> Compiler::compile(std::string_view text) {
  FD_TRY_VOID(check_whole_manifest(text));
  const std::optional<JsonTree> tree = JsonTree::of(text);
  if (!tree) return damaged("it is not JSON");
  const JsonValue json = tree->root();
  const std::int64_t format = whole(json, "format", INT32_MAX);
  if (ok() && format > format_version) {
    const JsonValue software = json.member("software").value_or(JsonValue());
    return Error{.code = Code::mismatch,
                 .message = fmt::format("the checkpoint has format {} (written by {}), {} reads formats up to {}",
                                        format, software.is_text() ? software.text() : "unknown software",
                                        software_version, format_version),
                 .hint = "resume with the program that wrote it, or a newer one"};
  }
  if (ok() && format != format_version) fail(fmt::format("format {} was never written", format));
  if (this->text(json, "schema") != "firedrill.manifest/1") fail("its schema is not firedrill.manifest/1");
  read_head(json);
  read_tensors(json);
  const JsonValue shards = list(json, "shards");
  if (static_cast<std::int64_t>(shards.size()) != head_.world * shard_kind_count) {
    fail(fmt::format("{} shards are listed for {} ranks", shards.size(), head_.world));
  }
  std::size_t index = 0;
  for (const JsonValue shard : shards) {
    if (!ok()) break;
    read_shard(shard, index++);
  }
  read_fields(json);
  if (ok()) check_cover();
  if (!ok()) return damaged(wrong_);
  return Value::pack(
      {value_of(std::span<const ManifestHead>(&head_, 1)), value_of(std::span<const ShardRecord>(shards_)),
       value_of(std::span<const TensorRecord>(tensors_)), value_of(std::span<const PieceRecord>(pieces_)),
       value_of(std::span<const FieldRecord>(fields_)), Value::copy_of(pool_)});
}

Result<Value> run_parse(std::span<const std::byte>, std::span<Value> inputs) {
  return Compiler().compile(inputs[0].text());
}

constexpr Kernel parse_kernel = make_kernel("ckpt.parse_manifest", KernelKind::codec, run_parse);

}  // namespace

Status check_whole_manifest(std::string_view text) {
  constexpr std::string_view tail = "\"digest\":\"";
  constexpr std::string_view end = "\"}\n";
  constexpr std::size_t tail_size = tail.size() + 32 + end.size();
  if (text.size() < tail_size || !text.ends_with(end)) return damaged("it does not end as a manifest does");
  const std::string_view body = text.substr(0, text.size() - tail_size);
  const std::string_view last = text.substr(body.size());
  const auto said = Digest::from_hex(last.substr(tail.size(), 32));
  if (!last.starts_with(tail) || !said) return damaged("it does not end with its digest");
  if (*said != digest_of(body)) {
    return damaged(fmt::format("its digest is {}, it says {}", digest_of(body).hex(), said->hex()));
  }
  return {};
}

Result<ManifestView> parse_manifest(Compute& compute, const Value& text) {
  FD_TRY(Value compiled, run_kernel(compute, parse_kernel, std::uint64_t{0}, {text}));
  return ManifestView(std::move(compiled));
}

}  // namespace firedrill
