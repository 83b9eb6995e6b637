// torn_write: of a long write some sectors never land, and nobody is told. The first, middle or last third reads as
// zeros; the size is right. If that third holds zeros anyway, another one is lost, so that the tear is always one.
#include <algorithm>
#include <span>
#include <utility>

#include "faults/kinds.h"

namespace firedrill {
namespace {

constexpr std::size_t sector = 512;

// Where a third begins: at a sector where there are enough of them.
std::size_t begin_of(std::size_t third, std::size_t size) {
  const std::size_t exact = size * third / 3;
  return size >= 3 * sector && third < 3 ? exact / sector * sector : exact;
}

}  // namespace

Status take_torn_write(const Firing& firing, Effects&) {
  Value& bytes = firing.call.file->bytes;
  MutableValue torn(DType::u8, Shape{static_cast<std::int64_t>(bytes.size())});
  const std::span<const std::byte> whole = bytes.bytes();
  std::copy(whole.begin(), whole.end(), torn.bytes().begin());
  const auto wanted = static_cast<std::size_t>(firing.spec.lost);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t third = (wanted + i) % 3;
    const std::size_t begin = begin_of(third, whole.size());
    const auto part = torn.bytes().subspan(begin, begin_of(third + 1, whole.size()) - begin);
    const bool holds_something = std::any_of(part.begin(), part.end(), [](std::byte b) { return b != std::byte{0}; });
    if (!holds_something) continue;
    std::fill(part.begin(), part.end(), std::byte{0});
    break;
  }
  bytes = std::move(torn).freeze();
  return {};
}

}  // namespace firedrill
