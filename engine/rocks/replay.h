// replay: the records of a store that is nothing but its logs, without opening it: its batches one after the other.
// What RocksDB would find, at a tiny part of the cost; a probe looks at a store after each of its writes.
//
// It knows the few forms that a store of ours has as long as it has no table file. Whatever else it meets (another tag
// in the description, logs that the description calls obsolete, another operation in a batch), it gives no answer, and
// RocksDB is asked. It is no check: the logs must have been scanned (log_scan.h). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/value.h"

namespace firedrill {

struct ReplayInput {
  std::vector<std::string_view> edits;    // the records of the description
  std::vector<std::string_view> batches;  // of all logs, in order, from the first batch on
  std::uint64_t oldest_log = 0;  // the least number of a log; logs below what the description says are obsolete
};

// As decode_store() gives them (record_store.h). Nothing: RocksDB must be asked.
std::optional<Value> replay(const ReplayInput& input);

}  // namespace firedrill
