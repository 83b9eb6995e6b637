#include "harness/run/timeline.h"

#include <fmt/format.h>

namespace firedrill {
namespace {

// A line for an event that belongs in the time line; empty for all others. Only rank 0 speaks for what all ranks do.
std::string line_of(const History& history, const Event& event) {
  const std::string_view name = history.text(event.name);
  switch (event.kind) {
    case EventKind::fault_fired: return fmt::format("fault: {}", name);
    case EventKind::node_lost:
      return fmt::format("node {} lost{}{}", event.a, event.b ? ", with its unsynced data" : "",
                         event.c ? ", with its unsynced names" : "");
    case EventKind::committed: return fmt::format("committed {}", name);
    case EventKind::rejected: return fmt::format("rejected {}: {}", name, history.text(event.detail));
    case EventKind::save_failed: return event.b ? fmt::format("save of step {} failed: {}", event.step, name) : "";
    case EventKind::acknowledged:
      return event.rank == 0 ? fmt::format("acknowledged step {} ({})", event.step, name) : "";
    case EventKind::floor_lowered: return fmt::format("floor lowered from {} to {}", event.a, event.b);
    default: return {};
  }
}

std::string beginning_of(const Event& event, const History& history) {
  if (event.kind == EventKind::started_fresh) return "from step 0";
  return fmt::format("from step {} ({})", event.a, history.text(event.name));
}

}  // namespace

std::vector<AttemptLine> timeline_of(const History& history) {
  std::vector<AttemptLine> lines;
  std::string_view first_layout;
  std::string_view layout;
  for (const Event& event : history.events()) {
    if (event.kind == EventKind::attempt_started) {
      layout = history.text(event.name);
      if (lines.empty()) first_layout = layout;
      lines.push_back(
          {.attempt = event.attempt, .floor = event.b, .began = "never: it ended before", .what = {}, .ended = {}});
      continue;
    }
    if (lines.empty()) continue;
    AttemptLine& line = lines.back();
    if ((event.kind == EventKind::restored || event.kind == EventKind::started_fresh) && event.rank <= 0) {
      line.began = beginning_of(event, history);
      if (layout != first_layout) line.began += fmt::format(", as {}", layout);
    }
    if (event.kind == EventKind::attempt_ended) line.ended = history.text(event.name);
    std::string what = line_of(history, event);
    if (!what.empty()) line.what.push_back(std::move(what));
  }
  return lines;
}

std::vector<FiredFault> fired_in(const History& history) {
  std::vector<FiredFault> fired;
  for (const std::uint32_t position : history.of(EventKind::fault_fired)) {
    const Event& event = history[position];
    fired.push_back({.fault = std::string(history.text(event.name)),
                     .attempt = event.attempt,
                     .rank = event.rank,
                     .step = event.step,
                     .phase = std::string(to_string(event.phase))});
  }
  return fired;
}

AttributionLine line_of(const Blame& blame) {
  return {.attempt = blame.attempt,
          .kind = std::string(to_string(blame.kind)),
          .ranks = blame.ranks,
          .stream = blame.stream,
          .sequence = blame.sequence,
          .step = blame.step,
          .phase = std::string(work_of(blame.phase)),
          .call = blame.call,
          .what = blame.what,
          .last_completed = {blame.last_completed.begin(), blame.last_completed.end()},
          .text = describe(blame)};
}

}  // namespace firedrill
