// Memo: results of kernels by the digests of their inputs. Kernels are pure, so a trial that repeats what an earlier
// one computed costs look-ups. Neither history nor digests depend on whether it is there; 1 hit in `recheck_every` is
// computed again and compared bit for bit, and a difference fails a check that names the kernel.
//
// The table keeps two generations of at most `bytes_max` each; a full young one becomes the old one and the former old
// one goes. Bytes of a Value that several results share count once. Only successes are kept.
//
// A look-up is a few reads of memory that is in no cache. But whoever asks mostly asks for what came next last time, so
// each entry remembers what followed, and its memory is asked for ahead of time (MemoTrail).
//
// Threads: a table and all computes on it belong to one thread. Errors: the kernels'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/digest.h"
#include "engine/seam/compute.h"

namespace firedrill::sim {

struct MemoOptions {
  std::size_t bytes_max = 64 << 20;      // per generation
  std::uint64_t recheck_every = 10'000;  // hits; 0: never
};

struct MemoCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t rechecks = 0;
};

// What one caller asked for last, and is expected to ask for next.
class MemoTrail {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFFU;
  static constexpr std::size_t callers_max = 10;

  // Each entry remembers what so many callers asked for behind it; further ones share.
  explicit MemoTrail(std::size_t caller = 0) : caller_(caller % callers_max) {}

 private:
  friend class MemoTable;
  static constexpr std::size_t distance = 3;  // so many calls ahead memory is asked for

  std::size_t caller_;
  std::uint64_t epoch_ = 0;
  // Entries, by the number of the call modulo the distance.
  std::uint32_t asked_[distance] = {none, none, none};
  std::uint32_t expected_[distance] = {none, none, none};
  std::size_t at_ = 0;
};

// Outlives worlds; shared by all ranks and trials of a thread.
class MemoTable {
 public:
  explicit MemoTable(const MemoOptions& options = {});

  // The result kept under `key`, or nothing. Valid until the next keep().
  const Value* find(const Digest& key);
  const Value* find(const Digest& key, MemoTrail& trail);
  void keep(const Digest& key, const Value& result);
  void clear();

  const MemoOptions& options() const { return options_; }
  MemoCounters& counters() { return counters_; }
  std::size_t bytes() const { return young_.bytes + old_.bytes; }
  std::size_t entries() const { return young_.entries.size() + old_.entries.size(); }

 private:
  // A cache line.
  struct alignas(64) Entry {
    Digest key;
    Value result;
    std::uint32_t later[MemoTrail::callers_max];  // entries of the same generation; none: not known
  };
  struct Generation {
    std::vector<Entry> entries;
    std::vector<std::uint64_t> slots;  // open addressing: high half of the hash, entry + 1 below; a power of two
    std::vector<const void*> counted;  // open addressing: the Values whose bytes are in `bytes`
    std::size_t counted_used = 0;
    std::size_t bytes = 0;

    std::uint32_t find(const Digest& key) const;
    std::uint32_t insert(const Digest& key, const Value& result);
    void count(const Value& value);
    bool count_identity(const void* identity);
    void clear();
  };
  std::uint32_t entry_of(const Digest& key);
  void follow(MemoTrail& trail, std::uint32_t entry);
  void age();

  MemoOptions options_;
  MemoCounters counters_;
  Generation young_;
  Generation old_;
  std::uint64_t epoch_ = 1;  // of the young generation
};

// The key of a call: 128 bits of the kernel, its scalars and the keys of its inputs. For tables in memory only.
Digest memo_key(const Kernel& kernel, std::span<const std::byte> scalars, std::span<const Value> inputs);

class MemoCompute final : public ForwardingCompute {
 public:
  // `caller`: which of those that share the table; callers with numbers of their own are told ahead apart.
  MemoCompute(Compute& inner, MemoTable& table, std::size_t caller = 0)
      : ForwardingCompute(inner), table_(table), trail_(caller) {}
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override;

 private:
  void recheck(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs, const Value& kept);

  MemoTable& table_;
  MemoTrail trail_;
};

}  // namespace firedrill::sim
