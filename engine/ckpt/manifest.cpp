#include "engine/ckpt/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/text.h"

namespace firedrill {
namespace {

using Json = nlohmann::json;

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
  const Json& member(const Json& object, const char* key);
  std::string text(const Json& object, const char* key);
  std::int64_t number(const Json& value, std::string_view what, std::int64_t max);
  std::int64_t whole(const Json& object, const char* key, std::int64_t max);
  Digest digest(const Json& value, std::string_view what);
  const Json& array(const Json& object, const char* key);
  TextRef keep(std::string_view text);

  void read_head(const Json& body);
  void read_tensors(const Json& body);
  void read_shard(const Json& shard, std::size_t index);
  void read_piece(const Json& piece, const ShardRecord& shard);
  void read_fields(const Json& body);
  void check_cover();
  template <class Record>
  static Value value_of(std::span<const Record> records) {
    return Value::copy_of(DType::u8, Shape{static_cast<std::int64_t>(records.size_bytes())}, std::as_bytes(records));
  }

  std::string wrong_;
  Json none_;
  ManifestHead head_;
  std::vector<ShardRecord> shards_;
  std::vector<TensorRecord> tensors_;
  std::vector<PieceRecord> pieces_;
  std::vector<FieldRecord> fields_;
  std::string pool_;
};

Error damaged(std::string what) { return Error{.code = Code::corrupted, .message = fmt::format("manifest: {}", what)}; }

const Json& Compiler::member(const Json& object, const char* key) {
  if (object.is_object()) {
    if (const auto found = object.find(key); found != object.end()) return *found;
  }
  fail(fmt::format("`{}` is missing", key));
  return none_;
}

std::string Compiler::text(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_string()) {
    fail(fmt::format("`{}` is not a text", key));
    return {};
  }
  return value.get<std::string>();
}

std::int64_t Compiler::number(const Json& value, std::string_view what, std::int64_t max) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(max)) {
    fail(fmt::format("`{}` is not a whole number up to {}", what, max));
    return 0;
  }
  return value.get<std::int64_t>();
}

std::int64_t Compiler::whole(const Json& object, const char* key, std::int64_t max) {
  return number(member(object, key), key, max);
}

Digest Compiler::digest(const Json& value, std::string_view what) {
  std::optional<Digest> digest;
  if (value.is_string()) digest = Digest::from_hex(value.get_ref<const std::string&>());
  if (!digest) fail(fmt::format("`{}` is not a digest", what));
  return digest.value_or(Digest{});
}

const Json& Compiler::array(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_array()) fail(fmt::format("`{}` is not a list", key));
  return value.is_array() ? value : none_;
}

TextRef Compiler::keep(std::string_view text) {
  const TextRef ref{.offset = static_cast<std::uint32_t>(pool_.size()),
                    .size = static_cast<std::uint32_t>(text.size())};
  pool_ += text;
  return ref;
}

void Compiler::read_head(const Json& body) {
  const Json& provenance = member(body, "provenance");
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
  const std::string directory = text(body, "directory");
  for (const std::string& part : split(directory, '/')) {
    if (!is_safe_name(part)) fail(fmt::format("`directory` is {}, which may lead elsewhere", directory));
  }
  head_.directory = keep(directory);
}

void Compiler::read_tensors(const Json& body) {
  for (const Json& entry : array(body, "tensors")) {
    TensorRecord tensor;
    tensor.name = keep(text(entry, "name"));
    const std::string dtype = text(entry, "dtype");
    tensor.dtype = -1;
    for (const DType known : {DType::u8, DType::i32, DType::i64, DType::f32, DType::bf16, DType::f16}) {
      if (dtype == to_string(known)) tensor.dtype = static_cast<std::int32_t>(known);
    }
    if (tensor.dtype < 0) fail(fmt::format("`dtype` is {}, which is not known", dtype));
    tensor.count = 1;
    for (const Json& size : array(entry, "shape")) {
      if (tensor.dimensions == static_cast<std::int32_t>(tensor.sizes.size())) return fail("a shape of 5 dimensions");
      const std::int64_t extent = number(size, "shape", count_max);
      if (extent > 0 && tensor.count > count_max / extent) return fail("a tensor is too large to be true");
      tensor.count *= extent;
      tensor.sizes[static_cast<std::size_t>(tensor.dimensions++)] = extent;
    }
    tensors_.push_back(tensor);
  }
}

void Compiler::read_piece(const Json& piece, const ShardRecord& shard) {
  if (!piece.is_array() || piece.size() != 5) return fail("a piece is not a list of 5");
  PieceRecord record;
  record.tensor = number(piece[0], "tensor", count_max);
  record.begin = number(piece[1], "begin", count_max);
  record.end = number(piece[2], "end", count_max);
  record.offset = number(piece[3], "offset", count_max);
  record.digest = digest(piece[4], "digest");
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

void Compiler::read_shard(const Json& entry, std::size_t index) {
  ShardRecord shard;
  shard.rank = static_cast<std::int32_t>(index / shard_kind_count);
  shard.kind = static_cast<std::int32_t>(index % shard_kind_count);
  const std::string expected = shard_name(static_cast<ShardKind>(shard.kind), shard.rank);
  if (const std::string name = text(entry, "name"); name != expected) {
    return fail(fmt::format("shard {} is called {}, not {}", index, name, expected));
  }
  if (whole(entry, "rank", INT32_MAX) != shard.rank) return fail(fmt::format("{} is of another rank", expected));
  shard.name = keep(expected);
  shard.node = static_cast<std::int32_t>(whole(entry, "node", INT32_MAX));
  shard.size = whole(entry, "size", count_max);
  shard.digest = digest(member(entry, "digest"), "digest");
  shard.pieces_begin = static_cast<std::int64_t>(pieces_.size());
  for (const Json& piece : array(entry, "pieces")) {
    read_piece(piece, shard);
    if (!ok()) return;
  }
  shard.pieces_end = static_cast<std::int64_t>(pieces_.size());
  shards_.push_back(shard);
}

void Compiler::read_fields(const Json& body) {
  for (const Json& field : array(body, "fields")) {
    if (!field.is_array() || field.size() != 2 || !field[0].is_string() || !field[1].is_string()) {
      return fail("a field of the job is not a pair of texts");
    }
    fields_.push_back(
        {.name = keep(field[0].get_ref<const std::string&>()), .value = keep(field[1].get_ref<const std::string&>())});
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
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return damaged("it is not JSON");
  const std::int64_t format = whole(json, "format", INT32_MAX);
  if (ok() && format > format_version) {
    const Json software = json.value("software", Json());
    return Error{.code = Code::mismatch,
                 .message = fmt::format("the checkpoint has format {} (written by {}), {} reads formats up to {}",
                                        format, software.is_string() ? software.get<std::string>() : "unknown software",
                                        software_version, format_version),
                 .hint = "resume with the program that wrote it, or a newer one"};
  }
  if (ok() && format != format_version) fail(fmt::format("format {} was never written", format));
  if (this->text(json, "schema") != "firedrill.manifest/1") fail("its schema is not firedrill.manifest/1");
  read_head(json);
  read_tensors(json);
  const Json& shards = array(json, "shards");
  if (static_cast<std::int64_t>(shards.size()) != head_.world * shard_kind_count) {
    fail(fmt::format("{} shards are listed for {} ranks", shards.size(), head_.world));
  }
  for (std::size_t i = 0; i < shards.size() && ok(); ++i) read_shard(shards[i], i);
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
