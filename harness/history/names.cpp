#include "harness/history/names.h"

#include <cstring>

namespace firedrill {
namespace {

constexpr std::size_t slots_at_first = 256;  // a power of two, as all later sizes

// Cheap, for a table that compares the texts in any case.
std::uint32_t hash_of(std::string_view text) {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15ULL;
  std::uint64_t hash = text.size() * odd;
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * odd;
    hash ^= hash >> 32;
  };
  const auto word_at = [text](std::size_t at, std::size_t size) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, size);
    return word;
  };
  constexpr std::size_t whole = sizeof(std::uint64_t);
  for (std::size_t at = 0; at + whole < text.size(); at += whole) mix(word_at(at, whole));
  mix(text.size() < whole ? word_at(0, text.size()) : word_at(text.size() - whole, whole));  // the last may overlap
  return static_cast<std::uint32_t>(hash);
}

}  // namespace

NameTable::NameTable() : texts_(1), views_(1), digests_{digest_of(std::string_view{})}, slots_(slots_at_first) {}

NameId NameTable::intern(std::string_view text) {
  if (text.empty()) return 0;
  const std::uint32_t hash = hash_of(text);
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot].name != 0) {
    if (slots_[slot].hash == hash && views_[slots_[slot].name] == text) return slots_[slot].name;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  const NameId name = static_cast<NameId>(views_.size());
  views_.push_back(texts_.emplace_back(text));
  digests_.push_back(digest_of(text));
  slots_[slot] = {.hash = hash, .name = name};
  if (views_.size() * 2 > slots_.size()) grow();
  return name;
}

void NameTable::grow() {
  std::vector<Slot> slots(slots_.size() * 4);
  for (const Slot& one : slots_) {
    if (one.name == 0) continue;
    std::size_t slot = one.hash & (slots.size() - 1);
    while (slots[slot].name != 0) slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = one;
  }
  slots_ = std::move(slots);
}

}  // namespace firedrill
