#include "harness/check/probe_counts.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"

namespace firedrill {

std::string ProbeCounts::in_words(WorldKind world) const {
  const bool has_power = world == WorldKind::sim || by_view[1] > 0;
  if (has_power) return fmt::format("processes_die: {}, power_fails: {}", by_view[0], by_view[1]);
  return fmt::format("processes_die: {}, power_fails: not applicable", by_view[0]);
}

Turns::Turns(const Case& run, std::initializer_list<EventKind> kinds) {
  FD_CHECK(kinds.size() <= kinds_max, "{} kinds of turns", kinds.size());
  std::size_t i = 0;
  for (const EventKind kind : kinds) left_[i++] = run.history().of(kind);
  pass(0);
}

void Turns::pass(std::size_t position) {
  next_ = std::numeric_limits<std::size_t>::max();
  for (std::span<const std::uint32_t>& left : left_) {
    while (!left.empty() && left.front() < position) left = left.subspan(1);
    if (!left.empty()) next_ = std::min<std::size_t>(next_, left.front());
  }
}

}  // namespace firedrill
