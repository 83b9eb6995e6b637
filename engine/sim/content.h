// Content: the bytes of one file, by reference: runs of Values, no byte copied on a write, and none on a read of
// exactly what one write wrote. Gaps read as zeros.
//
// Its digest names the bytes through the digests of the runs, so equal digests mean equal bytes; the same bytes written
// in other pieces have another digest.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/value.h"

namespace firedrill::sim {

// A sum of digests: parts come and go in any order at O(1).
inline void add_to(Digest& sum, const Digest& part) {
  sum.high += part.high;
  sum.low += part.low;
}
inline void take_from(Digest& sum, const Digest& part) {
  sum.high -= part.high;
  sum.low -= part.low;
}

class Content {
 public:
  std::int64_t size() const { return size_; }
  Digest digest() const { return sum_; }
  void write(std::int64_t offset, const Value& bytes);
  // At most `size` bytes; the very Value of a write if the range is exactly it.
  Value read(std::int64_t offset, std::int64_t size) const;
  void clear();

 private:
  struct Extent {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    Value value;                   // u8, one dimension
    std::int64_t value_begin = 0;  // where in `value` the extent starts
    Digest digest;                 // of all of the above
  };
  void cut(std::int64_t begin, std::int64_t end);  // makes a gap

  std::vector<Extent> extents_;  // by begin, disjoint
  std::int64_t size_ = 0;
  Digest sum_;
};

}  // namespace firedrill::sim
