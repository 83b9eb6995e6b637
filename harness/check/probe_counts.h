// How many probes of each view a property judged, and how it says so; and the walk over them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
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

enum class ProbeAnswer : std::uint8_t { not_judged, right, wrong };

// The positions of events behind which a probe that says the same may be judged otherwise, as one walks forward.
class Turns {
 public:
  Turns(const Case& run, std::initializer_list<EventKind> kinds);
  // The first position at which a probe is behind a turn that was not passed yet.
  std::size_t next() const { return next_; }
  // Passes all before a position.
  void pass(std::size_t position);

 private:
  static constexpr std::size_t kinds_max = 6;
  std::array<std::span<const std::uint32_t>, kinds_max> left_{};
  std::size_t next_ = 0;
};

// Asks `judge(position, probe)` of the probes in their order, counts those that were judged, and returns the position
// of the first that is wrong. Most probes say what the last one in their view said, and are as right as that: they are
// asked for only if an event of `turns` lies between the two. So `judge` must depend on the position by such events
// alone.
template <class Judge>
std::optional<std::uint32_t> first_wrong_probe(const Case& run, std::initializer_list<EventKind> turns,
                                               ProbeCounts& counts, Judge judge) {
  struct Said {
    std::int64_t result = std::numeric_limits<std::int64_t>::min();
    bool judged = false;
    ProbeView view = ProbeView::processes_die;
  };
  std::array<Said, probe_view_count> last{};
  Turns turn(run, turns);
  for (const std::uint32_t position : run.history().of(EventKind::probe)) {
    const Event& event = run.event(position);
    if (position > turn.next()) {
      last = {};
      turn.pass(position);
    }
    Said& said = last[static_cast<std::size_t>(event.b) % last.size()];
    if (event.a != said.result) {
      const ProbeResult& probe = run.history().probe(event);
      const ProbeAnswer answer = judge(position, probe);
      said = {.result = event.a, .judged = answer != ProbeAnswer::not_judged, .view = probe.view};
      if (answer == ProbeAnswer::wrong) {
        counts.count(probe.view);
        return position;
      }
    }
    if (said.judged) counts.count(said.view);
  }
  return std::nullopt;
}

}  // namespace firedrill
