#include "engine/sim/memo.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace firedrill::sim {
namespace {

constexpr std::size_t first_capacity = 1024;

std::size_t hash_of(const void* identity) {
  return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(identity) * 0x9E3779B97F4A7C15ULL >> 16);
}

// 128 bits that tell calls apart. What they are made of is mostly digests already: one wide multiplication for two
// words, as in wyhash (https://github.com/wangyi-fudan/wyhash), is enough. The words are added again to what their
// product has lost of them. A factor of 0, which forgets what came before, is as rare as a collision of 64 bits.
class KeyMixer {
 public:
  __extension__ using Wide = unsigned __int128;

  void add(std::uint64_t first, std::uint64_t second) {
    const auto product = static_cast<Wide>(high_ ^ first) * (low_ ^ second);
    high_ = static_cast<std::uint64_t>(product) + second;
    low_ = static_cast<std::uint64_t>(product >> 64) + first;
  }
  // The last words may not be full.
  void add(std::span<const std::byte> bytes) {
    std::uint64_t words[2];
    while (!bytes.empty()) {
      const std::size_t size = std::min(bytes.size(), sizeof(words));
      words[0] = words[1] = 0;
      std::memcpy(words, bytes.data(), size);
      add(words[0], words[1]);
      bytes = bytes.subspan(size);
    }
  }
  Digest finish() {
    add(0x9E3779B97F4A7C15, 0xD1B54A32D192ED03);
    add(0x8CB92BA72F3D8DD7, 0xA0761D6478BD642F);
    return {.high = high_, .low = low_};
  }

 private:
  std::uint64_t high_ = 0x2D358DCCAA6C78A5;
  std::uint64_t low_ = 0x8BB84B93962EACC9;
};

}  // namespace

Digest memo_key(const Kernel& kernel, std::span<const std::byte> scalars, std::span<const Value> inputs) {
  KeyMixer mixer;
  mixer.add(kernel.id, scalars.size() << 32 | inputs.size());
  mixer.add(scalars);
  for (const Value& input : inputs) {
    const Digest key = input ? input.key() : Digest{};
    mixer.add(key.high, key.low);
  }
  return mixer.finish();
}

// One generation.

std::uint32_t MemoTable::Generation::find(const Digest& key) const {
  if (slots.empty()) return MemoTrail::none;
  const std::size_t mask = slots.size() - 1;
  const std::uint64_t tag = key.high >> 32;
  for (std::size_t i = key.low & mask; slots[i] != 0; i = (i + 1) & mask) {
    if (slots[i] >> 32 != tag) continue;
    const std::uint32_t at = static_cast<std::uint32_t>(slots[i]) - 1;
    if (entries[at].key == key) return at;
  }
  return MemoTrail::none;
}

// The key must not be there.
std::uint32_t MemoTable::Generation::insert(const Digest& key, const Value& result) {
  const auto place = [this](const Digest& of, std::size_t entry) {
    const std::size_t mask = slots.size() - 1;
    std::size_t i = of.low & mask;
    while (slots[i] != 0) i = (i + 1) & mask;
    slots[i] = of.high >> 32 << 32 | (entry + 1);
  };
  if (2 * (entries.size() + 1) > slots.size()) {
    slots.assign(slots.empty() ? first_capacity : 2 * slots.size(), 0);
    for (std::size_t i = 0; i < entries.size(); ++i) place(entries[i].key, i);
  }
  place(key, entries.size());
  Entry& entry = entries.emplace_back(Entry{.key = key, .result = result, .later = {}});
  std::fill(std::begin(entry.later), std::end(entry.later), MemoTrail::none);
  count(result);
  return static_cast<std::uint32_t>(entries.size()) - 1;
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
  entries.clear();
  std::fill(slots.begin(), slots.end(), 0);
  std::fill(counted.begin(), counted.end(), nullptr);
  counted_used = bytes = 0;
}

// The table.

MemoTable::MemoTable(const MemoOptions& options) : options_(options) {}

const Value* MemoTable::find(const Digest& key) {
  const std::uint32_t entry = entry_of(key);
  return entry == MemoTrail::none ? nullptr : &young_.entries[entry].result;
}

const Value* MemoTable::find(const Digest& key, MemoTrail& trail) {
  if (trail.epoch_ != epoch_) {
    trail.epoch_ = epoch_;
    std::fill(std::begin(trail.asked_), std::end(trail.asked_), MemoTrail::none);
    std::fill(std::begin(trail.expected_), std::end(trail.expected_), MemoTrail::none);
  }
  const std::uint32_t expected = trail.expected_[trail.at_];
  const bool as_expected = expected != MemoTrail::none && young_.entries[expected].key == key;
  const std::uint32_t entry = as_expected ? expected : entry_of(key);
  if (entry == MemoTrail::none) return nullptr;
  if (trail.epoch_ == epoch_) follow(trail, entry);
  return &young_.entries[entry].result;
}

// In the young generation; one that is found in the old one moves.
std::uint32_t MemoTable::entry_of(const Digest& key) {
  if (const std::uint32_t found = young_.find(key); found != MemoTrail::none) return found;
  const std::uint32_t found = old_.find(key);
  if (found == MemoTrail::none) return found;
  const Value result = old_.entries[found].result;
  if (young_.bytes >= options_.bytes_max) age();
  return young_.insert(key, result);
}

// The caller is at `entry` now. Asked for is the entry of some calls ahead, and what is read behind those of the calls
// before it, which are there by now: the header of a result, and those of its parts.
void MemoTable::follow(MemoTrail& trail, std::uint32_t entry) {
  std::uint32_t& before = trail.asked_[trail.at_];
  if (before != MemoTrail::none) {
    std::uint32_t& follower = young_.entries[before].later[trail.caller_];
    if (follower != entry) follower = entry;  // what is not written need not go back to memory
  }
  before = entry;
  const std::uint32_t later = young_.entries[entry].later[trail.caller_];
  trail.expected_[trail.at_] = later;
  if (later != MemoTrail::none) __builtin_prefetch(&young_.entries[later]);
  trail.at_ = (trail.at_ + 1) % MemoTrail::distance;
  const std::uint32_t next = trail.expected_[trail.at_];
  const std::uint32_t second = trail.expected_[(trail.at_ + 1) % MemoTrail::distance];
  if (second != MemoTrail::none) {
    const auto* header = static_cast<const std::byte*>(young_.entries[second].result.identity());
    __builtin_prefetch(header, 1);
    __builtin_prefetch(header + 64, 1);
    __builtin_prefetch(header + 128, 1);
  }
  if (next == MemoTrail::none) return;
  const Value& result = young_.entries[next].result;
  if (!result.is_pack()) return;
  for (const Value& part : result.parts()) __builtin_prefetch(part.identity(), 1);
}

void MemoTable::keep(const Digest& key, const Value& result) {
  if (young_.bytes >= options_.bytes_max) age();
  if (young_.find(key) == MemoTrail::none) young_.insert(key, result);
}

void MemoTable::age() {
  std::swap(young_, old_);
  young_.clear();
  ++epoch_;
}

void MemoTable::clear() {
  young_.clear();
  old_.clear();
  ++epoch_;
}

Result<Value> MemoCompute::run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) {
  const Digest key = memo_key(kernel, scalars, inputs);
  MemoCounters& counters = table_.counters();
  if (const Value* found = table_.find(key, trail_)) {
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
