// How many probes of each view a property judged, and how it says so.
#pragma once

#include <array>
#include <string>

#include "harness/check/property.h"

namespace firedrill {

struct ProbeCounts {
  std::array<std::int64_t, probe_view_count> by_view{};

  void count(ProbeView view) { ++by_view[static_cast<std::size_t>(view)]; }
  std::int64_t total() const { return by_view[0] + by_view[1]; }
  // "processes_die: 40, power_fails: 40"; the process world cannot cut the power of its own machine.
  std::string in_words(WorldKind world) const;
};

}  // namespace firedrill
