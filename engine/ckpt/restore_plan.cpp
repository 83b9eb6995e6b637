#include "engine/ckpt/restore_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/ckpt/shard.h"
#include "engine/ckpt/structure.h"

namespace firedrill {
namespace {

// Bytes [from, from + size) of a piece go to byte `to` of a group. The piece lies at `at` of its read.
struct CopyRecord {
  std::int64_t read = 0;
  std::int64_t at = 0;
  std::int64_t piece = 0;
  std::int64_t from = 0;
  std::int64_t size = 0;
  std::int64_t group = 0;
  std::int64_t to = 0;
};
static_assert(std::has_unique_object_representations_v<CopyRecord>);
static_assert(std::has_unique_object_representations_v<ReadRecord>);

template <class Record>
Value value_of(const std::vector<Record>& records) {
  const auto bytes = std::as_bytes(std::span(records));
  return Value::copy_of(DType::u8, Shape{static_cast<std::int64_t>(bytes.size())}, bytes);
}

template <class Record>
std::span<const Record> records_in(const Value& value) {
  return {reinterpret_cast<const Record*>(value.bytes().data()), value.bytes().size() / sizeof(Record)};
}

std::string describe_tensor(std::string_view name, DType dtype, std::span<const std::int64_t> sizes) {
  return fmt::format("{} ({} [{}])", name, to_string(dtype), fmt::join(sizes, ", "));
}

std::int64_t bytes_of(const ManifestView& manifest, const PieceRecord& piece) {
  const TensorRecord& tensor = manifest.tensors()[static_cast<std::size_t>(piece.tensor)];
  return (piece.end - piece.begin) * static_cast<std::int64_t>(size_of(static_cast<DType>(tensor.dtype)));
}

class Planner {
 public:
  explicit Planner(const ManifestView& manifest) : manifest_(manifest), taken_(manifest.tensors().size()) {
    const auto tensors = manifest.tensors();
    by_name_.reserve(tensors.size());
    for (std::size_t t = 0; t < tensors.size(); ++t) by_name_.emplace_back(manifest.text(tensors[t].name), t);
    std::sort(by_name_.begin(), by_name_.end());
    pieces_of_.resize(tensors.size());
    const auto pieces = manifest.pieces();
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      pieces_of_[static_cast<std::size_t>(pieces[p].tensor)].push_back(static_cast<std::int64_t>(p));
    }
    for (const ShardRecord& shard : manifest.shards()) {
      const auto index = &shard - manifest.shards().data();
      for (std::int64_t p = shard.pieces_begin; p < shard.pieces_end; ++p) shard_of_.push_back(index);
    }
  }

  Status add(const StateGroup& group, std::int64_t index) {
    const auto width = static_cast<std::int64_t>(size_of(group.dtype));
    for (const TensorSlot& slot : group.tensors) {
      FD_TRY(const std::size_t tensor, find(group, slot));
      taken_[tensor] = std::byte{1};
      for (const std::int64_t p : pieces_of_[tensor]) {
        const PieceRecord& piece = manifest_.pieces()[static_cast<std::size_t>(p)];
        const std::int64_t begin = std::max(piece.begin, slot.begin);
        const std::int64_t end = std::min(piece.end, slot.begin + slot.count());
        if (begin >= end && piece.end > piece.begin) continue;
        copies_.push_back({.piece = p,
                           .from = (begin - piece.begin) * width,
                           .size = (end - begin) * width,
                           .group = index,
                           .to = (slot.offset + begin - slot.begin) * width});
      }
    }
    return {};
  }

  Value finish() {
    std::stable_sort(copies_.begin(), copies_.end(), [this](const CopyRecord& a, const CopyRecord& b) {
      return std::pair(shard(a), piece(a).offset) < std::pair(shard(b), piece(b).offset);
    });
    std::vector<ReadRecord> reads;
    for (CopyRecord& copy : copies_) {
      const std::int64_t offset = piece(copy).offset;
      const std::int64_t end = offset + bytes_of(manifest_, piece(copy));
      if (reads.empty() || reads.back().shard != shard(copy) || offset > reads.back().offset + reads.back().size) {
        const std::int64_t start = offset <= shard_header_size_max ? 0 : offset;
        reads.push_back({.shard = shard(copy), .offset = start, .size = 0});
      }
      ReadRecord& read = reads.back();
      read.size = std::max(read.size, end - read.offset);
      copy.read = static_cast<std::int64_t>(reads.size()) - 1;
      copy.at = offset - read.offset;
    }
    return Value::pack({value_of(reads), value_of(copies_), value_of(taken_)});
  }

 private:
  Result<std::size_t> find(const StateGroup& group, const TensorSlot& slot) const {
    const auto wanted = [&] { return describe_tensor(slot.name, group.dtype, slot.shape.sizes()); };
    const auto found =
        std::lower_bound(by_name_.begin(), by_name_.end(), std::pair(std::string_view(slot.name), std::size_t{0}));
    const auto mismatch = [](std::string message) {
      return Error{.code = Code::mismatch,
                   .message = std::move(message),
                   .hint = "resume with the program and the job that wrote the checkpoint"};
    };
    if (found == by_name_.end() || found->first != slot.name) {
      return mismatch(
          fmt::format("checkpoint {} holds no tensor {}, which this job needs", to_string(manifest_.id()), wanted()));
    }
    const TensorRecord& tensor = manifest_.tensors()[found->second];
    const std::span<const std::int64_t> sizes(tensor.sizes.data(), static_cast<std::size_t>(tensor.dimensions));
    if (static_cast<DType>(tensor.dtype) != group.dtype || !std::ranges::equal(sizes, slot.shape.sizes())) {
      return mismatch(fmt::format("checkpoint {} holds {}, this job needs {}", to_string(manifest_.id()),
                                  firedrill::describe_tensor(manifest_, tensor), wanted()));
    }
    return found->second;
  }
  const PieceRecord& piece(const CopyRecord& copy) const {
    return manifest_.pieces()[static_cast<std::size_t>(copy.piece)];
  }
  std::int64_t shard(const CopyRecord& copy) const { return shard_of_[static_cast<std::size_t>(copy.piece)]; }

  const ManifestView& manifest_;
  std::vector<std::pair<std::string_view, std::size_t>> by_name_;  // sorted; of two of a name the first counts
  std::vector<std::vector<std::int64_t>> pieces_of_;
  std::vector<std::int64_t> shard_of_;
  std::vector<CopyRecord> copies_;
  std::vector<std::byte> taken_;
};

Result<Value> run_plan(std::span<const std::byte>, std::span<Value> inputs) {
  const ManifestView manifest(inputs[0]);
  FD_TRY(const StateView state, decode_structure(inputs[1]));
  Planner planner(manifest);
  for (std::size_t g = 0; g < state.size(); ++g) FD_TRY_VOID(planner.add(state[g], static_cast<std::int64_t>(g)));
  return planner.finish();
}

Status check_piece(const ManifestView& manifest, const CopyRecord& copy, std::span<const std::byte> bytes) {
  const PieceRecord& piece = manifest.pieces()[static_cast<std::size_t>(copy.piece)];
  const Digest digest = digest_of(bytes);
  if (digest == piece.digest) return {};
  std::string_view shard = "?";
  for (const ShardRecord& record : manifest.shards()) {
    if (copy.piece >= record.pieces_begin && copy.piece < record.pieces_end) shard = manifest.text(record.name);
  }
  const TensorRecord& tensor = manifest.tensors()[static_cast<std::size_t>(piece.tensor)];
  return Error{.code = Code::corrupted,
               .message = fmt::format("checkpoint {}: elements {} to {} of {} in {} have digest {}, not {}",
                                      to_string(manifest.id()), piece.begin, piece.end, manifest.text(tensor.name),
                                      shard, digest.hex(), piece.digest.hex())};
}

Result<Value> run_assemble(std::span<const std::byte>, std::span<Value> inputs) {
  const ManifestView manifest(inputs[0]);
  FD_TRY(const StateView state, decode_structure(inputs[2]));
  std::vector<MutableValue> groups;
  groups.reserve(state.size());
  for (const StateGroup& group : state) {
    groups.emplace_back(group.dtype, Shape{group.count});
    const auto bytes = groups.back().bytes();
    if (!bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
  }
  for (const CopyRecord& copy : records_in<CopyRecord>(inputs[1][1])) {
    const auto read = inputs[3][static_cast<std::size_t>(copy.read)].bytes();
    const std::int64_t size = bytes_of(manifest, manifest.pieces()[static_cast<std::size_t>(copy.piece)]);
    const auto bytes = read.subspan(static_cast<std::size_t>(copy.at), static_cast<std::size_t>(size));
    FD_TRY_VOID(check_piece(manifest, copy, bytes));
    const auto into = groups[static_cast<std::size_t>(copy.group)].bytes();
    FD_CHECK(copy.to + copy.size <= static_cast<std::int64_t>(into.size()), "a tensor lies outside of its group");
    if (copy.size > 0) {
      std::memcpy(into.data() + copy.to, bytes.data() + copy.from, static_cast<std::size_t>(copy.size));
    }
  }
  std::vector<Value> values;
  values.reserve(groups.size());
  for (MutableValue& group : groups) values.push_back(std::move(group).freeze());
  return Value::pack(values);
}

constexpr Kernel plan_kernel = make_kernel("ckpt.plan_restore", KernelKind::codec, run_plan);
constexpr Kernel assemble_kernel = make_kernel("ckpt.assemble", KernelKind::codec, run_assemble);

}  // namespace

Result<RestorePlan> plan_restore(Compute& compute, const ManifestView& manifest, const Value& structure) {
  FD_TRY(Value plan, run_kernel(compute, plan_kernel, std::uint64_t{0}, {manifest.compiled(), structure}));
  return RestorePlan(std::move(plan));
}

Result<Value> assemble(Compute& compute, const ManifestView& manifest, const RestorePlan& plan, const Value& structure,
                       const Value& reads) {
  return run_kernel(compute, assemble_kernel, std::uint64_t{0}, {manifest.compiled(), plan.value(), structure, reads});
}

std::string describe_tensor(const ManifestView& manifest, const TensorRecord& tensor) {
  return describe_tensor(manifest.text(tensor.name), static_cast<DType>(tensor.dtype),
                         {tensor.sizes.data(), static_cast<std::size_t>(tensor.dimensions)});
}

}  // namespace firedrill
