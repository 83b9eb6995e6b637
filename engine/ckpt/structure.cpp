#include "engine/ckpt/structure.h"

#include <algorithm>

#include "engine/ckpt/wire.h"
#include "engine/seam/collectives.h"

namespace firedrill {
namespace {

constexpr std::size_t group_size_min = 4 + 1 + 1 + 1 + 4 + 4 + 8 + 4;
constexpr std::size_t tensor_size_min = 4 + 8 + 8 + 8 + 1;

// Appends to memory that must be large enough.
class RawWriter {
 public:
  explicit RawWriter(std::span<std::byte> memory) : at_(memory.data()), end_(at_ + memory.size()) {}
  template <class Number>
  void number(Number value) {
    static_assert(std::is_integral_v<Number>);
    append(&value, sizeof(value));
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    append(text.data(), text.size());
  }
  const std::byte* at() const { return at_; }

 private:
  void append(const void* bytes, std::size_t size) {
    FD_CHECK(size <= static_cast<std::size_t>(end_ - at_), "{} bytes where {} are left", size, end_ - at_);
    if (size > 0) std::memcpy(at_, bytes, size);
    at_ += size;
  }

  std::byte* at_;
  std::byte* end_;
};

std::size_t size_of_group(const StateGroup& group) {
  std::size_t size = group_size_min + group.name.size();
  for (const TensorSlot& tensor : group.tensors) {
    size += tensor_size_min + tensor.name.size() + tensor.shape.rank() * sizeof(std::int64_t);
  }
  return size;
}

void write_group(RawWriter& out, const StateGroup& group) {
  out.text(group.name);
  out.number(static_cast<std::uint8_t>(group.shard));
  out.number(static_cast<std::uint8_t>(group.dtype));
  out.number(static_cast<std::uint8_t>(group.replicated ? 1 : 0));
  out.number(group.holder);
  out.number(group.holders);
  out.number(group.count);
  out.number(static_cast<std::uint32_t>(group.tensors.size()));
  for (const TensorSlot& tensor : group.tensors) {
    out.text(tensor.name);
    out.number(tensor.offset);
    out.number(tensor.begin);
    out.number(tensor.length);
    out.number(static_cast<std::uint8_t>(tensor.shape.rank()));
    for (const std::int64_t size : tensor.shape.sizes()) out.number(size);
  }
}

StateGroup read_group(WireReader& in) {
  StateGroup group;
  group.name = in.text();
  group.shard = static_cast<ShardKind>(in.number<std::uint8_t>());
  group.dtype = static_cast<DType>(in.number<std::uint8_t>());
  group.replicated = in.number<std::uint8_t>() != 0;
  group.holder = in.number<int>();
  group.holders = in.number<int>();
  group.count = in.number<std::int64_t>();
  const std::size_t tensors = in.count(tensor_size_min);
  for (std::size_t t = 0; t < tensors && in.ok(); ++t) {
    TensorSlot tensor;
    tensor.name = in.text();
    tensor.offset = in.number<std::int64_t>();
    tensor.begin = in.number<std::int64_t>();
    tensor.length = in.number<std::int64_t>();
    std::array<std::int64_t, 4> sizes{};
    const std::size_t dimensions = std::min<std::size_t>(in.number<std::uint8_t>(), sizes.size());
    for (std::size_t d = 0; d < dimensions; ++d) sizes[d] = in.number<std::int64_t>();
    tensor.shape = Shape(std::span<const std::int64_t>(sizes.data(), dimensions));
    group.tensors.push_back(std::move(tensor));
  }
  return group;
}

}  // namespace

Value encode_structure(const StateView& state) {
  std::size_t size = sizeof(std::uint32_t);
  for (const StateGroup& group : state) size += size_of_group(group);
  MutableValue encoded(DType::u8, Shape{static_cast<std::int64_t>(size)});
  const auto bytes = encoded.bytes();
  RawWriter out(bytes);
  out.number(static_cast<std::uint32_t>(state.size()));
  for (const StateGroup& group : state) write_group(out, group);
  FD_CHECK(out.at() == bytes.data() + bytes.size(), "{} bytes of a structure are not those written", bytes.size());
  return std::move(encoded).freeze();
}

Result<StateView> decode_structure(const Value& encoded) {
  WireReader in(encoded.text());
  StateView state;
  const std::size_t groups = in.count(group_size_min);
  state.reserve(groups);
  for (std::size_t g = 0; g < groups && in.ok(); ++g) state.push_back(read_group(in));
  if (!in.at_end()) return Error{.code = Code::corrupted, .message = "the description of a state is not whole"};
  return state;
}

bool same_structure(const StateView& a, const StateView& b) {
  const auto same_tensor = [](const TensorSlot& x, const TensorSlot& y) {
    return x.offset == y.offset && x.begin == y.begin && x.length == y.length && x.shape == y.shape && x.name == y.name;
  };
  const auto same_group = [&same_tensor](const StateGroup& x, const StateGroup& y) {
    return x.shard == y.shard && x.dtype == y.dtype && x.count == y.count && x.replicated == y.replicated &&
           x.holder == y.holder && x.holders == y.holders && x.name == y.name &&
           (x.tensors.shares_with(y.tensors) ||
            std::equal(x.tensors.begin(), x.tensors.end(), y.tensors.begin(), y.tensors.end(), same_tensor));
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_group);
}

StateView structure_only(const StateView& state) {
  StateView copy = state;
  for (StateGroup& group : copy) group.value = Value();
  return copy;
}

namespace {

// Share `index` of `count` elements in whole grains; the first ones have one grain more. The frozen bytes of the format
// depend on it.
Range share_of_count(std::int64_t count, int shares, int index) {
  FD_CHECK(shares > 0 && index >= 0 && index < shares, "share {} of {}", index, shares);
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t each = grains / shares;
  const std::int64_t longer = grains % shares;
  const std::int64_t first = index * each + std::min<std::int64_t>(index, longer);
  const std::int64_t grains_here = each + (index < longer ? 1 : 0);
  return Range{.begin = std::min(first * grain, count), .end = std::min((first + grains_here) * grain, count)};
}

}  // namespace

TensorRun share_of(const StateGroup& group, const TensorSlot& tensor, int ranks, int rank) {
  Range share{.begin = 0, .end = group.count};
  if (group.replicated) {
    share = group.holders > 0 ? share_of_count(group.count, group.holders, group.holder)
                              : share_of_count(group.count, ranks, rank);
  }
  const std::int64_t from = std::max(share.begin, tensor.offset);
  const std::int64_t to = std::max(from, std::min(share.end, tensor.offset + tensor.count()));
  const std::int64_t moved = tensor.begin - tensor.offset;
  return TensorRun{.begin = from + moved, .end = to + moved, .flat = from};
}

}  // namespace firedrill
