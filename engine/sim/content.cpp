#include "engine/sim/content.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/check.h"

namespace firedrill::sim {
namespace {

Digest digest_of_extent(std::int64_t begin, std::int64_t end, const Value& value, std::int64_t value_begin) {
  return DigestBuilder()
      .add(static_cast<std::uint64_t>(begin))
      .add(static_cast<std::uint64_t>(end))
      .add(static_cast<std::uint64_t>(value_begin))
      .add(value.digest())
      .finish();
}

}  // namespace

void Content::write(std::int64_t offset, const Value& bytes) {
  FD_CHECK(offset >= 0, "a write at offset {}", offset);
  const auto count = static_cast<std::int64_t>(bytes.size());
  if (count == 0) return;
  const std::int64_t end = offset + count;
  if (offset < size_) cut(offset, end);
  Extent extent{.begin = offset, .end = end, .value = bytes.as_bytes(), .value_begin = 0, .digest = {}};
  extent.digest = digest_of_extent(offset, end, extent.value, 0);
  const auto after = std::partition_point(extents_.begin(), extents_.end(),
                                          [offset](const Extent& other) { return other.begin < offset; });
  add_to(sum_, extent.digest);
  extents_.insert(after, std::move(extent));
  size_ = std::max(size_, end);
}

Value Content::read(std::int64_t offset, std::int64_t size) const {
  FD_CHECK(offset >= 0 && size >= 0, "a read of {} bytes at offset {}", size, offset);
  const std::int64_t begin = std::min(offset, size_);
  const std::int64_t end = begin + std::min(size, size_ - begin);
  auto extent = std::partition_point(extents_.begin(), extents_.end(),
                                     [begin](const Extent& other) { return other.end <= begin; });
  if (extent != extents_.end() && extent->begin == begin && extent->end == end && extent->value_begin == 0 &&
      extent->value.count() == end - begin) {
    return extent->value;
  }
  MutableValue assembled(DType::u8, Shape{end - begin});
  std::span<std::byte> bytes = assembled.bytes();
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  for (; extent != extents_.end() && extent->begin < end; ++extent) {
    const std::int64_t from = std::max(begin, extent->begin);
    const std::int64_t to = std::min(end, extent->end);
    const std::byte* source = extent->value.bytes().data() + extent->value_begin + (from - extent->begin);
    std::memcpy(bytes.data() + (from - begin), source, static_cast<std::size_t>(to - from));
  }
  return std::move(assembled).freeze();
}

void Content::clear() {
  extents_.clear();
  size_ = 0;
  sum_ = {};
}

void Content::cut(std::int64_t begin, std::int64_t end) {
  auto extent = std::partition_point(extents_.begin(), extents_.end(),
                                     [begin](const Extent& other) { return other.end <= begin; });
  while (extent != extents_.end() && extent->begin < end) {
    const Extent old = std::move(*extent);
    take_from(sum_, old.digest);
    extent = extents_.erase(extent);
    const auto keep = [&](std::int64_t from, std::int64_t to) {
      if (from >= to) return;
      Extent part{.begin = from,
                  .end = to,
                  .value = old.value,
                  .value_begin = old.value_begin + (from - old.begin),
                  .digest = {}};
      part.digest = digest_of_extent(from, to, part.value, part.value_begin);
      add_to(sum_, part.digest);
      extent = extents_.insert(extent, std::move(part)) + 1;
    };
    keep(old.begin, begin);
    keep(end, old.end);
  }
}

}  // namespace firedrill::sim
