#include "harness/check/property.h"

#include <fmt/format.h>

#include <algorithm>

namespace firedrill {
namespace {

// What a fault does to bytes that were already safe. Losing what was never synced is legal and excuses nothing; an
// injected error damages only files that the engine must then leave unpublished.
bool damages_storage(FaultKind kind) {
  switch (kind) {
    case FaultKind::kill:
    case FaultKind::kill_node:
    case FaultKind::io_error:
    case FaultKind::no_space: return false;
  }
  return false;
}

}  // namespace

Case::Case(const History& history, const Plan& plan) : history_(history), plan_(plan), damaged_from_(history.size()) {
  golden_.assign(static_cast<std::size_t>(std::max(plan.job.steps, 0)) + 1, no_state);
  for (const std::uint32_t position : history.of(EventKind::golden)) {
    const Event& event = history[position];
    if (event.step < 0 || static_cast<std::size_t>(event.step) >= golden_.size()) continue;
    golden_[static_cast<std::size_t>(event.step)] = states().find(event.digest);
    has_golden_ = true;
  }
  for (const std::uint32_t position : history.of(EventKind::attempt_started)) {
    const Event& event = history[position];
    if (!attempts_.empty()) attempts_.back().end = position;
    attempts_.push_back(
        {.number = event.attempt, .begin = position, .end = history.size(), .world_size = event.a, .floor = event.b});
  }
  for (const std::uint32_t position : history.of(EventKind::fault_fired)) {
    const FaultSpec* spec = fault(history[position]);
    if (spec && damages_storage(spec->kind)) {
      damaged_from_ = position;
      break;
    }
  }
}

StateId Case::golden(std::int64_t step) const {
  if (step < 0 || static_cast<std::size_t>(step) >= golden_.size()) return no_state;
  return golden_[static_cast<std::size_t>(step)];
}

const AttemptSpan* Case::attempt_at(std::size_t position) const {
  const auto after = std::partition_point(attempts_.begin(), attempts_.end(),
                                          [&](const AttemptSpan& span) { return span.begin <= position; });
  return after == attempts_.begin() ? nullptr : &*std::prev(after);
}

bool Case::storage_damaged_before(std::size_t position) const { return damaged_from_ < position; }

const FaultSpec* Case::fault(const Event& event) const {
  if (event.a < 0 || static_cast<std::size_t>(event.a) >= plan_.faults.size()) return nullptr;
  return &plan_.faults[static_cast<std::size_t>(event.a)];
}

std::string place_of(const Event& event) {
  std::string place;
  if (event.step != 0) place = fmt::format("step {}, ", event.step);
  if (event.rank >= 0) place += fmt::format("rank {}, ", event.rank);
  return place + fmt::format("attempt {}", event.attempt);
}

}  // namespace firedrill
