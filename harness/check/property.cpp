#include "harness/check/property.h"

#include <fmt/format.h>

#include <algorithm>

namespace firedrill {
namespace {

// The checkpoint whose file it is: "shards/4-1-1/model-0", "manifests/4-1-1", "tmp/4-1-1".
std::optional<CheckpointId> checkpoint_of(std::string_view path) {
  for (const std::string_view directory : {"shards/", "manifests/", "tmp/"}) {
    if (!path.starts_with(directory)) continue;
    const std::string_view rest = path.substr(directory.size());
    return checkpoint_id_from(rest.substr(0, rest.find('/')));
  }
  return std::nullopt;
}

// Which of the plan's two an attempt had, policy and losses decide.
const Layout& layout_named(const Plan& plan, std::string_view name) {
  const std::optional<Layout>& other = plan.recovery.layout;
  return other && name == to_string(*other) ? *other : plan.layout;
}

}  // namespace

Case::Case(const History& history, const Plan& plan) : history_(history), plan_(plan), lied_from_(history.size()) {
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
    attempts_.push_back({.number = event.attempt,
                         .begin = position,
                         .end = history.size(),
                         .world_size = event.a,
                         .floor = event.b,
                         .layout = &layout_named(plan, history.text(event.name))});
  }
  for (const std::uint32_t position : history.of(EventKind::fault_fired)) {
    const FaultSpec* spec = fault(history[position]);
    if (!spec) continue;
    const Harm harm = info_of(spec->kind).harm;
    if (harm == Harm::sync_undone) lied_from_ = std::min<std::size_t>(lied_from_, position);
    if (harm != Harm::write_damaged && harm != Harm::rest_damaged) continue;
    damage_.push_back({.position = position,
                       .id = checkpoint_of(history.text(history[position].detail)),
                       .at_rest = harm == Harm::rest_damaged});
  }
}

std::span<const std::uint32_t> Case::of(EventKind kind, std::size_t begin, std::size_t end) const {
  const auto all = history_.of(kind);
  const auto first = std::lower_bound(all.begin(), all.end(), begin);
  return {first, std::lower_bound(first, all.end(), end)};
}

StateId Case::golden(std::int64_t step) const {
  if (step < 0 || static_cast<std::size_t>(step) >= golden_.size()) return no_state;
  return golden_[static_cast<std::size_t>(step)];
}

const Layout& Case::layout_of(int attempt) const {
  const auto span = std::ranges::find(attempts_, attempt, &AttemptSpan::number);
  return span == attempts_.end() ? plan_.layout : *span->layout;
}

const AttemptSpan* Case::attempt_at(std::size_t position) const {
  const auto after = std::partition_point(attempts_.begin(), attempts_.end(),
                                          [&](const AttemptSpan& span) { return span.begin <= position; });
  return after == attempts_.begin() ? nullptr : &*std::prev(after);
}

bool Case::damaged_before(std::size_t position, const CheckpointId& id) const {
  return std::any_of(damage_.begin(), damage_.end(),
                     [&](const Damage& one) { return one.position < position && one.id == id; });
}

bool Case::lost_before(std::size_t position, const CheckpointId& id) const {
  return std::any_of(damage_.begin(), damage_.end(),
                     [&](const Damage& one) { return one.at_rest && one.position < position && one.id == id; });
}

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
