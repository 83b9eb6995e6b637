#include "engine/sim/memo.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace firedrill::sim {
namespace {

constexpr std::size_t first_capacity = 1024;

std::size_t hash_of(const void* identity) {
  return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(identity) * 0x9E3779B97F4A7C15ULL >> 16);
}

// The words of a key: on the stack for all but very wide calls.
class KeyWords {
 public:
  void add(std::uint64_t word) {
    if (used_ == words_.size()) {
      const Digest folded = digest();
      words_[0] = folded.high;
      words_[1] = folded.low;
      used_ = 2;
    }
    words_[used_++] = word;
  }
  Digest digest() const { return digest_of(std::span(words_.data(), used_)); }

 private:
  std::array<std::uint64_t, 64> words_;
  std::size_t used_ = 0;
};

}  // namespace

Digest memo_key(const Kernel& kernel, std::span<const std::byte> scalars, std::span<const Value> inputs) {
  KeyWords words;
  words.add(kernel.id);
  words.add(scalars.size() << 32 | inputs.size());
  for (std::size_t i = 0; i < scalars.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, scalars.data() + i, std::min(sizeof(word), scalars.size() - i));
    words.add(word);
  }
  for (const Value& input : inputs) {
    const Digest key = input ? input.key() : Digest{};
    words.add(key.high);
    words.add(key.low);
  }
  return words.digest();
}

// One generation.

const Value* MemoTable::Generation::find(const Digest& key) const {
  if (slots.empty()) return nullptr;
  const std::size_t mask = slots.size() - 1;
  for (std::size_t i = key.low & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots[i];
    if (!slot.result) return nullptr;
    if (slot.key == key) return &slot.result;
  }
}

void MemoTable::Generation::insert(const Digest& key, const Value& result) {
  if (2 * (used + 1) > slots.size()) {
    std::vector<Slot> before(slots.empty() ? first_capacity : 2 * slots.size());
    std::swap(before, slots);
    const std::size_t mask = slots.size() - 1;
    for (Slot& slot : before) {
      if (!slot.result) continue;
      std::size_t i = slot.key.low & mask;
      while (slots[i].result) i = (i + 1) & mask;
      slots[i] = std::move(slot);
    }
  }
  const std::size_t mask = slots.size() - 1;
  std::size_t i = key.low & mask;
  while (slots[i].result) {
    if (slots[i].key == key) return;
    i = (i + 1) & mask;
  }
  slots[i].key = key;
  slots[i].result = result;
  ++used;
  count(result);
}

bool MemoTable::Generation::count_identity(const void* identity) {
  if (2 * (counted_used + 1) > counted.size()) {
    std::vector<const void*> before(counted.empty() ? first_capacity : 2 * counted.size());
    std::swap(before, counted);
    const std::size_t mask = counted.size() - 1;
    for (const void* other : before) {
      if (!other) continue;
      std::size_t i = hash_of(other) & mask;
      while (counted[i]) i = (i + 1) & mask;
      counted[i] = other;
    }
  }
  const std::size_t mask = counted.size() - 1;
  std::size_t i = hash_of(identity) & mask;
  for (; counted[i]; i = (i + 1) & mask) {
    if (counted[i] == identity) return false;
  }
  counted[i] = identity;
  ++counted_used;
  return true;
}

void MemoTable::Generation::count(const Value& value) {
  static constexpr std::size_t overhead = 128;  // header, slot
  if (!value || !count_identity(value.identity())) return;
  bytes += overhead;
  if (value.is_pack()) {
    for (const Value& part : value.parts()) count(part);
  } else {
    bytes += value.size();
  }
}

void MemoTable::Generation::clear() {
  for (Slot& slot : slots) slot.result = Value();
  std::fill(counted.begin(), counted.end(), nullptr);
  used = counted_used = bytes = 0;
}

// The table.

MemoTable::MemoTable(const MemoOptions& options) : options_(options) {}

const Value* MemoTable::find(const Digest& key) {
  if (const Value* found = young_.find(key)) return found;
  const Value* found = old_.find(key);
  if (!found) return nullptr;
  const Value result = *found;
  keep(key, result);
  return young_.find(key);
}

void MemoTable::keep(const Digest& key, const Value& result) {
  if (young_.bytes >= options_.bytes_max) age();
  young_.insert(key, result);
}

void MemoTable::age() {
  std::swap(young_, old_);
  young_.clear();
}

void MemoTable::clear() {
  young_.clear();
  old_.clear();
}

Result<Value> MemoCompute::run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) {
  const Digest key = memo_key(kernel, scalars, inputs);
  MemoCounters& counters = table_.counters();
  if (const Value* found = table_.find(key)) {
    Value kept = *found;
    ++counters.hits;
    const std::uint64_t every = table_.options().recheck_every;
    if (every != 0 && counters.hits % every == 0) recheck(kernel, scalars, inputs, kept);
    return kept;
  }
  ++counters.misses;
  Result<Value> result = inner_.run(kernel, scalars, inputs);
  if (result && *result) table_.keep(key, *result);
  return result;
}

void MemoCompute::recheck(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs,
                          const Value& kept) {
  ++table_.counters().rechecks;
  const Result<Value> again = inner_.run(kernel, scalars, inputs);
  FD_CHECK(again && again->same_as(kept), "kernel {} is not pure: the same inputs gave another result now ({})",
           kernel.name, again ? std::string("other bits") : describe(again.error()));
}

}  // namespace firedrill::sim
