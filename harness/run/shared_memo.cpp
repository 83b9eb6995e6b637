#include "harness/run/shared_memo.h"

#include <utility>

namespace firedrill {

Value SharedMemo::find(const Digest& key) {
  Value shared;
  {
    Part& part = part_of(key);
    const std::lock_guard lock(part.mutex);
    const auto found = part.results.find(key);
    if (found == part.results.end()) return {};
    shared = found->second;
  }
  return shared.duplicate();
}

void SharedMemo::keep(const Digest& key, const Value& result) {
  static constexpr std::size_t overhead = 256;  // headers, the map's node
  const UnconfinedValues for_all;
  Value copy = result.duplicate();
  const std::size_t bytes = copy.bytes_total() + overhead;
  Part& part = part_of(key);
  const std::lock_guard lock(part.mutex);
  if (part.bytes + bytes > bytes_max_ / parts_.size()) {
    part.results.clear();
    part.bytes = 0;
  }
  if (part.results.try_emplace(key, std::move(copy)).second) part.bytes += bytes;
}

std::size_t SharedMemo::entries() {
  std::size_t entries = 0;
  for (Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    entries += part.results.size();
  }
  return entries;
}

}  // namespace firedrill
