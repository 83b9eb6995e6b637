#include "harness/history/names.h"

namespace firedrill {
namespace {

constexpr std::size_t slots_at_first = 256;  // a power of two, as all later sizes

}  // namespace

NameTable::NameTable() : texts_(1), digests_{digest_of(std::string_view{})}, slots_(slots_at_first, 0) {}

NameId NameTable::intern(std::string_view text) {
  if (text.empty()) return 0;
  const Digest digest = digest_of(text);
  std::size_t slot = digest.low & (slots_.size() - 1);
  while (slots_[slot] != 0) {
    if (digests_[slots_[slot]] == digest) return slots_[slot];
    slot = (slot + 1) & (slots_.size() - 1);
  }
  const NameId name = static_cast<NameId>(texts_.size());
  texts_.emplace_back(text);
  digests_.push_back(digest);
  slots_[slot] = name;
  if (texts_.size() * 2 > slots_.size()) grow();
  return name;
}

void NameTable::grow() {
  std::vector<NameId> slots(slots_.size() * 4, 0);
  for (NameId name = 1; name < texts_.size(); ++name) {
    std::size_t slot = digests_[name].low & (slots.size() - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = name;
  }
  slots_ = std::move(slots);
}

}  // namespace firedrill
