// Memo: results of kernels by the digests of their inputs. Kernels are pure, so a trial that repeats what an earlier
// one computed costs look-ups. Neither history nor digests depend on whether it is there; 1 hit in `recheck_every` is
// computed again and compared bit for bit, and a difference fails a check that names the kernel.
//
// The table keeps two generations of at most `bytes_max` each; a full young one becomes the old one and the former old
// one goes. Bytes of a Value that several results share count once. Only successes are kept.
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

// Outlives worlds; shared by all ranks and trials of a thread.
class MemoTable {
 public:
  explicit MemoTable(const MemoOptions& options = {});

  // The result kept under `key`, or nothing. Valid until the next keep().
  const Value* find(const Digest& key);
  void keep(const Digest& key, const Value& result);
  void clear();

  const MemoOptions& options() const { return options_; }
  MemoCounters& counters() { return counters_; }
  std::size_t bytes() const { return young_.bytes + old_.bytes; }
  std::size_t entries() const { return young_.used + old_.used; }

 private:
  struct Slot {
    Digest key;
    Value result;  // empty: the slot is free
  };
  struct Generation {
    std::vector<Slot> slots;  // open addressing, linear probing; a power of two
    std::size_t used = 0;
    std::vector<const void*> counted;  // open addressing: the Values whose bytes are in `bytes`
    std::size_t counted_used = 0;
    std::size_t bytes = 0;

    const Value* find(const Digest& key) const;
    void insert(const Digest& key, const Value& result);
    void count(const Value& value);
    bool count_identity(const void* identity);
    void clear();
  };
  void age();

  MemoOptions options_;
  MemoCounters counters_;
  Generation young_;
  Generation old_;
};

// The key of a call: XXH3-128 over the kernel, its scalars and the keys of its inputs.
Digest memo_key(const Kernel& kernel, std::span<const std::byte> scalars, std::span<const Value> inputs);

class MemoCompute final : public ForwardingCompute {
 public:
  MemoCompute(Compute& inner, MemoTable& table) : ForwardingCompute(inner), table_(table) {}
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override;

 private:
  void recheck(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs, const Value& kept);

  MemoTable& table_;
};

}  // namespace firedrill::sim
