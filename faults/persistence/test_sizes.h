// For tests: the sizes that a file had, one after another, in plain words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "faults/persistence/trace.h"

namespace firedrill::crash {

// What only a failed write reached is nobody's promise: a later one that reaches less has a size of its own, behind
// which the other may be there still.
struct SizeStep {
  OperationId write;
  std::int64_t size;
  bool promised;  // a sync of `write` promises it
};

inline std::vector<SizeStep> sizes_of(const Trace& trace, std::int64_t base, const std::vector<OperationId>& writes) {
  std::vector<SizeStep> sizes;
  std::int64_t seen = base;
  std::int64_t kept = base;
  for (const OperationId write : writes) {
    const Operation& operation = trace.operations[write];
    const bool failed = operation.error.has_value();
    const std::int64_t end = operation.offset + static_cast<std::int64_t>(operation.bytes.size());
    if (end > (failed ? seen : kept)) {
      sizes.push_back({.write = write, .size = end, .promised = !failed});
      if (seen > end) sizes.push_back({.write = write, .size = seen, .promised = false});
    }
    seen = std::max(seen, end);
    if (!failed) kept = std::max(kept, end);
  }
  return sizes;
}

}  // namespace firedrill::crash
