// CostTable: what things cost in virtual time. A plain table; the composition root fills it from the job's cluster.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/seam/clock.h"
#include "engine/seam/compute.h"

namespace firedrill::sim {

struct CostTable {
  Duration latency_in_node{2'000};
  Duration latency_between_nodes{10'000};
  std::uint64_t bandwidth_in_node = 100'000'000'000;  // bytes per second
  std::uint64_t bandwidth_between_nodes = 25'000'000'000;
  Duration send{500};  // of the sender's time
  Duration file_operation{50'000};
  Duration file_sync{500'000};
  std::uint64_t file_bandwidth = 2'000'000'000;
  // By KernelKind: forward, backward, optimizer, reduce, codec, other.
  std::array<Duration, 6> kernel = {Duration{100'000}, Duration{300'000}, Duration{50'000},
                                    Duration{5'000},   Duration{20'000},  Duration{0}};
  // Instead of the first two, by WorkKind; below zero: as above.
  static constexpr Duration as_any{-1};
  std::array<Duration, work_kind_count> work_forward = {as_any, as_any, as_any, as_any, as_any, as_any};
  std::array<Duration, work_kind_count> work_backward = {as_any, as_any, as_any, as_any, as_any, as_any};
  Duration of(const Kernel& k) const {
    const auto at = static_cast<std::size_t>(k.work);
    const Duration own = k.kind == KernelKind::forward    ? work_forward[at]
                         : k.kind == KernelKind::backward ? work_backward[at]
                                                          : as_any;
    return own < Duration{0} ? kernel[static_cast<std::size_t>(k.kind)] : own;
  }
  Duration failure_detection{1'000'000};  // until the peers of a dead rank are told
};

// How long `bytes` take at `bytes_per_second`, rounded down.
inline Duration transfer_time(std::int64_t bytes, std::uint64_t bytes_per_second) {
  if (bytes <= 0 || bytes_per_second == 0) return Duration{0};
  const auto amount = static_cast<std::uint64_t>(bytes);
  if (amount < 18'000'000'000) return Duration{static_cast<std::int64_t>(amount * 1'000'000'000 / bytes_per_second)};
  return Duration{static_cast<std::int64_t>(amount / bytes_per_second) * 1'000'000'000};
}

}  // namespace firedrill::sim
