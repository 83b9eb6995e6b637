// SharedMemo: results that the memos of several threads give each other, so that what one thread has computed no other
// computes again. It is asked only for what a thread's own table does not hold, and gives copies, so the threads'
// Values stay their own.
//
// At most `bytes_max`; a part of it that is full is forgotten as a whole. Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "engine/base/digest.h"
#include "engine/base/value.h"
#include "engine/sim/memo.h"

namespace firedrill {

class SharedMemo final : public sim::SharedResults {
 public:
  explicit SharedMemo(std::size_t bytes_max = std::size_t{128} << 20) : bytes_max_(bytes_max) {}

  Value find(const Digest& key) override;
  void keep(const Digest& key, const Value& result) override;
  std::size_t entries();

 private:
  struct Part {
    std::mutex mutex;
    std::unordered_map<Digest, Value> results;  // looked up only, never walked
    std::size_t bytes = 0;
  };
  // The bits that choose a slot in a table are others.
  Part& part_of(const Digest& key) { return parts_[key.high % parts_.size()]; }

  std::size_t bytes_max_;
  std::array<Part, 16> parts_;
};

}  // namespace firedrill
