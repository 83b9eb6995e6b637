#include "harness/check/probe_counts.h"

#include <fmt/format.h>

namespace firedrill {

std::string ProbeCounts::in_words(WorldKind world) const {
  const bool has_power = world == WorldKind::sim || by_view[1] > 0;
  if (has_power) return fmt::format("processes_die: {}, power_fails: {}", by_view[0], by_view[1]);
  return fmt::format("processes_die: {}, power_fails: not applicable", by_view[0]);
}

}  // namespace firedrill
