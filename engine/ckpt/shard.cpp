#include "engine/ckpt/shard.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/manifest.h"
#include "engine/ckpt/structure.h"
#include "engine/ckpt/wire.h"

namespace firedrill {
namespace {

constexpr std::string_view magic = "FDSHARD\n";
// How a header begins. The run id follows, with zeros up to a multiple of 8 bytes, and the digest of all that.
struct HeaderFields {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t size = 0;
  std::int64_t step = 0;
  std::int32_t attempt = 0;
  std::int32_t trial = 0;
  std::int32_t rank = 0;
  std::int32_t world = 0;
  std::uint32_t kind = 0;
  std::uint32_t run_size = 0;
  Digest job;
  std::int64_t payload = 0;
};
static_assert(std::has_unique_object_representations_v<HeaderFields>);
constexpr std::size_t header_fixed = sizeof(HeaderFields);
constexpr std::size_t piece_size_min = 4 + 1 + 1 + 3 * 8 + 16;

std::size_t padded(std::size_t size) { return (size + 7) / 8 * 8; }

Error not_whole(std::string_view what) {
  return Error{.code = Code::corrupted, .message = fmt::format("shard header: {}", what)};
}

// A rank's pieces of one kind, before their bytes are copied.
struct PlannedPiece {
  const StateGroup* group;
  const TensorSlot* tensor;
  TensorRun run;
};

std::vector<PlannedPiece> plan_pieces(const StateView& state, ShardKind kind, int ranks, int rank) {
  std::vector<PlannedPiece> pieces;
  for (const StateGroup& group : state) {
    if (group.shard != kind) continue;
    for (const TensorSlot& tensor : group.tensors) {
      const TensorRun run = share_of(group, tensor, ranks, rank);
      if (run.end > run.begin) pieces.push_back({.group = &group, .tensor = &tensor, .run = run});
    }
  }
  return pieces;
}

void write_piece(WireWriter& out, const PlannedPiece& piece, std::size_t offset, const Digest& digest) {
  out.text(piece.tensor->name);
  out.number(static_cast<std::uint8_t>(piece.group->dtype));
  out.number(static_cast<std::uint8_t>(piece.tensor->shape.rank()));
  for (const std::int64_t size : piece.tensor->shape.sizes()) out.number(size);
  out.number(piece.run.begin);
  out.number(piece.run.end);
  out.number(static_cast<std::int64_t>(offset));
  out.digest(digest);
}

std::span<const std::byte> bytes_of(const PlannedPiece& piece) {
  const std::size_t width = size_of(piece.group->dtype);
  return piece.group->value.bytes().subspan(static_cast<std::size_t>(piece.run.flat) * width,
                                            static_cast<std::size_t>(piece.run.end - piece.run.begin) * width);
}

Value encode_shard(const std::vector<PlannedPiece>& pieces, ShardHeader header, WireWriter& piece_list) {
  header.payload = 0;
  for (const PlannedPiece& piece : pieces) header.payload += static_cast<std::int64_t>(bytes_of(piece).size());
  const std::string head = encode_shard_header(header);
  MutableValue file(DType::u8, Shape{static_cast<std::int64_t>(head.size()) + header.payload});
  std::memcpy(file.bytes().data(), head.data(), head.size());
  std::size_t offset = head.size();
  piece_list.number(static_cast<std::uint32_t>(pieces.size()));
  for (const PlannedPiece& piece : pieces) {
    const auto bytes = bytes_of(piece);
    std::memcpy(file.bytes().data() + offset, bytes.data(), bytes.size());
    write_piece(piece_list, piece, offset, digest_of(bytes));
    offset += bytes.size();
  }
  return std::move(file).freeze();
}

Result<Value> run_encode(std::span<const std::byte> bytes, std::span<Value> inputs) {
  const auto scalars = scalars_as<EncodeScalars>(bytes);
  FD_TRY(StateView state, decode_structure(inputs[0]));
  FD_CHECK(inputs[2].parts().size() == state.size(), "{} values for {} groups", inputs[2].parts().size(), state.size());
  for (std::size_t g = 0; g < state.size(); ++g) {
    state[g].value = inputs[2][g];
    FD_CHECK(state[g].value && state[g].value.dtype() == state[g].dtype && state[g].value.count() == state[g].count,
             "group {} does not hold the {} elements of {} it declares", state[g].name, state[g].count,
             to_string(state[g].dtype));
  }
  ReportHead head{.word = word_of(scalars.rank, true), .scalars = scalars};
  ShardHeader header{.id = {.step = scalars.step, .attempt = scalars.attempt, .trial = scalars.trial},
                     .rank = scalars.rank,
                     .world = scalars.world,
                     .job = scalars.job,
                     .run_id = std::string(inputs[1].text())};
  WireWriter pieces;
  std::array<Value, 1 + shard_kind_count> results;
  for (std::size_t kind = 0; kind < shard_kind_count; ++kind) {
    header.kind = static_cast<ShardKind>(kind);
    Value& shard = results[1 + kind];
    shard = encode_shard(plan_pieces(state, header.kind, scalars.world, scalars.rank), header, pieces);
    head.sizes[kind] = static_cast<std::int64_t>(shard.size());
    head.digests[kind] = shard.digest();
  }
  WireWriter report;
  report.raw({reinterpret_cast<const char*>(&head), sizeof(head)});
  report.raw(pieces.written());
  results[0] = report.value();
  return Value::pack(results);
}

constexpr Kernel encode_kernel = make_kernel("ckpt.encode_shards", KernelKind::codec, run_encode);

Status check_shard(const ReportHead& head, ShardKind kind, const Value& bytes,
                   const std::vector<ReportedPiece>& pieces) {
  const auto at = static_cast<std::size_t>(kind);
  const std::string name = shard_name(kind, head.scalars.rank);
  const auto wrong = [&name](std::string what) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("{} was written but reads back wrong: {}", name, what)};
  };
  if (static_cast<std::int64_t>(bytes.size()) != head.sizes[at]) {
    return wrong(fmt::format("{} bytes, not {}", bytes.size(), head.sizes[at]));
  }
  auto header = parse_shard_header(bytes.text().substr(0, shard_header_size_max));
  if (!header) return wrong(header.error().message);
  const CheckpointId id{.step = head.scalars.step, .attempt = head.scalars.attempt, .trial = head.scalars.trial};
  if (header->id != id || header->rank != head.scalars.rank || header->kind != kind ||
      header->job != head.scalars.job) {
    return wrong(
        fmt::format("it is {} of rank {} of {}", to_string(header->kind), header->rank, to_string(header->id)));
  }
  for (const ReportedPiece& piece : pieces) {
    const std::size_t width = size_of(piece.dtype);
    const auto size = static_cast<std::size_t>(piece.end - piece.begin) * width;
    const auto offset = static_cast<std::size_t>(piece.offset);
    if (offset > bytes.size() || size > bytes.size() - offset) return wrong("a piece lies outside of the file");
    const Digest digest = digest_of(bytes.bytes().subspan(offset, size));
    if (digest != piece.digest) {
      return wrong(fmt::format("elements {} to {} of {} have digest {}, not {}", piece.begin, piece.end, piece.tensor,
                               digest.hex(), piece.digest.hex()));
    }
  }
  if (bytes.digest() != head.digests[at]) return wrong("its digest is not that of the bytes written");
  return {};
}

Result<Value> run_check(std::span<const std::byte>, std::span<Value> inputs) {
  FD_TRY(const ReportHead head, report_head(inputs[0]));
  FD_TRY(const auto pieces, reported_pieces(inputs[0]));
  for (std::size_t kind = 0; kind < shard_kind_count; ++kind) {
    FD_TRY_VOID(check_shard(head, static_cast<ShardKind>(kind), inputs[1 + kind], pieces[kind]));
  }
  return inputs[0];
}

constexpr Kernel check_kernel = make_kernel("ckpt.check_shards", KernelKind::codec, run_check);

}  // namespace

std::string encode_shard_header(const ShardHeader& header) {
  FD_CHECK(header.run_id.size() <= run_id_size_max, "a run id of {} characters", header.run_id.size());
  std::string bytes(header_fixed + padded(header.run_id.size()) + sizeof(Digest), '\0');
  HeaderFields fields{.version = static_cast<std::uint32_t>(format_version),
                      .size = static_cast<std::uint32_t>(bytes.size()),
                      .step = header.id.step,
                      .attempt = static_cast<std::int32_t>(header.id.attempt),
                      .trial = static_cast<std::int32_t>(header.id.trial),
                      .rank = header.rank,
                      .world = header.world,
                      .kind = static_cast<std::uint32_t>(header.kind),
                      .run_size = static_cast<std::uint32_t>(header.run_id.size()),
                      .job = header.job,
                      .payload = header.payload};
  magic.copy(fields.magic.data(), fields.magic.size());
  std::memcpy(bytes.data(), &fields, sizeof(fields));
  header.run_id.copy(bytes.data() + header_fixed, header.run_id.size());
  const std::size_t hashed = bytes.size() - sizeof(Digest);
  const Digest digest = digest_of(std::string_view(bytes).substr(0, hashed));
  std::memcpy(bytes.data() + hashed, &digest, sizeof(digest));
  return bytes;
}

ExpectedHeader::ExpectedHeader(const ShardHeader& header) {
  if (header.run_id.size() > run_id_size_max) return;
  const std::string bytes = encode_shard_header(header);
  bytes.copy(bytes_.data(), bytes.size());
  size_ = bytes.size();
}

bool ExpectedHeader::matches(std::string_view front, int rank, ShardKind kind, std::int64_t file_size) {
  const std::int64_t payload = file_size - static_cast<std::int64_t>(size_);
  if (size_ == 0 || front.size() < size_ || payload < 0) return false;
  const auto set = [this](std::size_t offset, auto value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(value));
  };
  set(offsetof(HeaderFields, rank), static_cast<std::int32_t>(rank));
  set(offsetof(HeaderFields, kind), static_cast<std::uint32_t>(kind));
  set(offsetof(HeaderFields, payload), payload);
  const std::size_t hashed = size_ - sizeof(Digest);
  if (std::memcmp(front.data(), bytes_.data(), hashed) != 0) return false;
  Digest digest;
  std::memcpy(&digest, front.data() + hashed, sizeof(digest));
  return digest == digest_of(front.substr(0, hashed));
}

Result<ShardHeader> parse_shard_header(std::string_view bytes) {
  WireReader in(bytes);
  if (in.raw(magic.size()) != magic) return not_whole("it does not begin as a shard does");
  const auto version = in.number<std::uint32_t>();
  const auto size = in.number<std::uint32_t>();
  if (in.ok() && version > static_cast<std::uint32_t>(format_version)) {
    return Error{
        .code = Code::mismatch,
        .message = fmt::format("the shard has format {}, this program reads formats up to {}", version, format_version),
        .hint = "use the program that wrote it, or a newer one"};
  }
  if (version != static_cast<std::uint32_t>(format_version)) return not_whole("format 0 was never written");
  ShardHeader header;
  header.id.step = in.number<std::int64_t>();
  header.id.attempt = in.number<std::int32_t>();
  header.id.trial = in.number<std::int32_t>();
  header.rank = in.number<std::int32_t>();
  header.world = in.number<std::int32_t>();
  const auto kind = in.number<std::uint32_t>();
  const auto run_size = in.number<std::uint32_t>();
  header.job = in.digest();
  header.payload = in.number<std::int64_t>();
  if (run_size > run_id_size_max || size != header_fixed + padded(run_size) + sizeof(Digest) || size > bytes.size()) {
    return not_whole("its sizes cannot be");
  }
  header.run_id = in.raw(run_size);
  const std::string_view padding = in.raw(padded(run_size) - run_size);
  if (in.digest() != digest_of(bytes.substr(0, size - sizeof(Digest)))) return not_whole("its digest does not hold");
  const bool zeros = padding.find_first_not_of('\0') == std::string_view::npos;
  if (kind >= shard_kind_count || header.payload < 0 || !zeros) return not_whole("its fields cannot be");
  header.kind = static_cast<ShardKind>(kind);
  header.size = size;
  return header;
}

Result<EncodedShards> encode_shards(Compute& compute, const EncodeScalars& scalars, const Value& structure,
                                    const Value& run, const StateView& state) {
  std::vector<Value> values;
  values.reserve(state.size());
  for (const StateGroup& group : state) values.push_back(group.value);
  std::array<Value, 3> inputs{structure, run, Value::pack(values)};
  FD_TRY(const Value encoded, run_kernel(compute, encode_kernel, scalars, std::span<Value>(inputs)));
  EncodedShards result{.report = encoded[0]};
  for (std::size_t kind = 0; kind < shard_kind_count; ++kind) result.shards[kind] = encoded[1 + kind];
  return result;
}

Result<ReportHead> report_head(const Value& report) {
  ReportHead head;
  if (!report || report.size() < sizeof(head)) {
    return Error{.code = Code::corrupted, .message = "a rank's report of its shards is not whole"};
  }
  std::memcpy(&head, report.bytes().data(), sizeof(head));
  return head;
}

Result<std::array<std::vector<ReportedPiece>, shard_kind_count>> reported_pieces(const Value& report) {
  std::array<std::vector<ReportedPiece>, shard_kind_count> pieces;
  WireReader in(report.text());
  in.raw(sizeof(ReportHead));
  for (auto& of_kind : pieces) {
    const std::size_t count = in.count(piece_size_min);
    of_kind.reserve(count);
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      ReportedPiece piece;
      piece.tensor = in.text();
      piece.dtype = static_cast<DType>(in.number<std::uint8_t>());
      std::array<std::int64_t, 4> sizes{};
      const std::size_t dimensions = std::min<std::size_t>(in.number<std::uint8_t>(), sizes.size());
      for (std::size_t d = 0; d < dimensions; ++d) sizes[d] = in.number<std::int64_t>();
      piece.shape = Shape(std::span<const std::int64_t>(sizes.data(), dimensions));
      piece.begin = in.number<std::int64_t>();
      piece.end = in.number<std::int64_t>();
      piece.offset = in.number<std::int64_t>();
      piece.digest = in.digest();
      of_kind.push_back(piece);
    }
  }
  if (!in.at_end()) return Error{.code = Code::corrupted, .message = "a rank's report of its shards is not whole"};
  return pieces;
}

Status check_shards(Compute& compute, const Value& report, const std::array<Value, shard_kind_count>& shards) {
  std::array<Value, 1 + shard_kind_count> inputs{report, shards[0], shards[1], shards[2]};
  const auto checked = run_kernel(compute, check_kernel, std::uint64_t{0}, std::span<Value>(inputs));
  return checked ? Status() : Status(checked.error());
}

}  // namespace firedrill
