// no_silent_restart: training begins at step 0 only when there is nothing to resume from.
//
// Verified: when an attempt starts fresh, or completes step 1, its floor is "none", nothing was acknowledged or
// validated before, no checkpoint that an earlier attempt committed still stands (neither failed later, rejected nor
// retired), and the last look at the disk saw nothing either.
// Not verified: that a checkpoint which is there is chosen in its full age; acknowledged_is_durable does that.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/check/all.h"

namespace firedrill {
namespace {

// The last event of `kind` before `position` that fits.
template <class Fits>
const Event* last_before(const Case& run, EventKind kind, std::size_t position, Fits fits) {
  const auto all = run.history().of(kind);
  for (auto at = std::lower_bound(all.begin(), all.end(), position); at != all.begin();) {
    const Event& event = run.event(*--at);
    if (fits(event)) return &event;
  }
  return nullptr;
}

const Event* last_before(const Case& run, EventKind kind, std::size_t position) {
  return last_before(run, kind, position, [](const Event&) { return true; });
}

// A commit of an earlier attempt that nothing took back.
const Event* standing_commit(const Case& run, std::size_t start, std::int32_t attempt) {
  return last_before(run, EventKind::committed, start, [&](const Event& commit) {
    if (commit.attempt >= attempt) return false;
    const auto same_id = [&](const Event& event) { return event.name == commit.name; };
    const auto same_try = [&](const Event& event) {
      return event.attempt == commit.attempt && event.step == commit.step && event.a == commit.a && event.b == 1;
    };
    return !last_before(run, EventKind::rejected, start, same_id) &&
           !last_before(run, EventKind::retired, start, same_id) &&
           !last_before(run, EventKind::save_failed, start, same_try);
  });
}

// What the last probe before `start` saw, if the disk has not lost anything since.
const ProbeResult* last_look(const Case& run, std::size_t start) {
  const Event* probe = last_before(run, EventKind::probe, start, [](const Event& event) {
    return event.b == static_cast<std::int64_t>(ProbeView::processes_die);
  });
  const Event* loss = last_before(run, EventKind::node_lost, start);
  if (!probe || (loss && loss > probe)) return nullptr;
  return &run.history().probe(*probe);
}

std::string wrong_with_start(const Case& run, std::size_t start) {
  const Event& event = run.event(start);
  const AttemptSpan* attempt = run.attempt_at(start);
  const std::string who = fmt::format("attempt {}, rank {} begins at step 0 although ", event.attempt, event.rank);
  if (attempt && attempt->number == event.attempt && attempt->floor >= 0) {
    return who + fmt::format("its floor is step {}", attempt->floor);
  }
  if (const Event* saved = last_before(run, EventKind::acknowledged, start)) {
    return who + fmt::format("{} was acknowledged", run.history().text(saved->name));
  }
  if (const Event* saved = last_before(run, EventKind::validated, start)) {
    return who + fmt::format("{} was validated", run.history().text(saved->name));
  }
  if (const Event* commit = standing_commit(run, start, event.attempt)) {
    return who + fmt::format("{} was committed", run.history().text(commit->name));
  }
  const ProbeResult* look = last_look(run, start);
  if (look && look->outcome == ProbeOutcome::found) return who + to_string(look->found) + " lies on the disk";
  if (look && look->outcome == ProbeOutcome::error) return who + "discovery fails there: " + look->error;
  return {};
}

// Where attempts begin at step 0: said so (started_fresh), or done so (the first step 1 of an attempt).
std::vector<std::uint32_t> fresh_starts(const Case& run) {
  const auto said = run.history().of(EventKind::started_fresh);
  std::vector<std::uint32_t> starts(said.begin(), said.end());
  std::optional<std::int32_t> attempt;
  for (const std::uint32_t position : run.history().of(EventKind::step_done)) {
    const Event& event = run.event(position);
    if (event.step != 1 || event.attempt == attempt) continue;
    attempt = event.attempt;
    starts.push_back(position);
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

}  // namespace

Verdict judge_no_silent_restart(const Case& run) {
  std::int64_t checked = 0;
  for (const std::uint32_t start : fresh_starts(run)) {
    ++checked;
    std::string wrong = wrong_with_start(run, start);
    if (!wrong.empty()) return Verdict::fail(checked, std::move(wrong));
  }
  return Verdict::pass(checked);
}

}  // namespace firedrill
