// acknowledged_is_durable: once a save was reported as done, no crash can take the run back behind it.
//
// Verified: from the first acknowledgement of a step on, every later probe, in every view the world offers, finds a
// checkpoint of that step or a newer one; and every attempt that looks for a checkpoint chooses one that is not older
// than what was acknowledged before, nor than the floor it was given.
// Excused: a checkpoint that a fault damaged at rest no longer counts, so the newest acknowledged one of the others
// must be found (damage by a write excuses nothing: it is there before the acknowledgement); an attempt that cannot
// read a checkpoint because of a fault, confirms that on another rank, reports the damage and takes the newest of the
// others, and one that comes after it; and what a power loss would leave once a sync has lied.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/check/all.h"
#include "harness/check/probe_counts.h"

namespace firedrill {
namespace {

// The highest acknowledged step as one walks forward through the history.
class Acknowledged {
 public:
  explicit Acknowledged(const Case& run)
      : run_(run),
        saves_(run.history().of(EventKind::acknowledged)),
        lowered_(run.history().of(EventKind::floor_lowered)) {}

  std::int64_t before(std::size_t position) {
    while (true) {
      const std::size_t save = save_ < saves_.size() ? saves_[save_] : position;
      const std::size_t lower = lower_ < lowered_.size() ? lowered_[lower_] : position;
      if (std::min(save, lower) >= position) return step_;
      if (save < lower) {
        step_ = std::max(step_, run_.event(save).step);
        ++save_;
      } else {
        step_ = std::min(step_, run_.event(lower).b);
        ++lower_;
      }
    }
  }

 private:
  const Case& run_;
  std::span<const std::uint32_t> saves_;
  std::span<const std::uint32_t> lowered_;
  std::size_t save_ = 0;
  std::size_t lower_ = 0;
  std::int64_t step_ = -1;
};

// The highest step acknowledged before a position whose checkpoint is not damaged at rest by then.
std::int64_t undamaged_before(const Case& run, std::size_t position, std::int64_t highest) {
  const auto saves = run.history().of(EventKind::acknowledged);
  std::int64_t step = -1;
  for (std::size_t i = saves.size(); i > 0 && step < highest; --i) {  // the newest is mostly whole
    if (saves[i - 1] >= position) continue;
    const Event& event = run.event(saves[i - 1]);
    const auto id = checkpoint_id_from(run.history().text(event.name));
    if (id && !run.lost_before(position, *id)) step = std::max(step, event.step);
  }
  return std::min(step, highest);
}

std::string what_probe_says(const ProbeResult& probe) {
  if (probe.outcome == ProbeOutcome::found) return fmt::format("discovery finds {}", to_string(probe.found));
  if (probe.outcome == ProbeOutcome::nothing) return "discovery finds nothing";
  return fmt::format("discovery fails: {}", probe.error);
}

// A fault made errors in the search of the attempt, or had damaged what was stored before.
bool explained(const Case& run, std::uint32_t report) {
  const auto fired = run.history().of(EventKind::fault_fired);
  return std::any_of(fired.begin(), fired.end(), [&](std::uint32_t position) {
    const FaultSpec* spec = run.fault(run.event(position));
    if (!spec || position >= report) return false;
    const Harm harm = info_of(spec->kind).harm;
    const bool in_attempt = run.event(position).attempt == run.event(report).attempt;
    return harm == Harm::rest_damaged || (harm == Harm::error && in_attempt);
  });
}

struct DamageReport {
  CheckpointId id;
  int attempt = 0;
  bool is_rejection = false;
  bool explained = false;
};

std::vector<DamageReport> damage_reports(const Case& run, std::size_t before) {
  std::vector<DamageReport> reports;
  for (const EventKind kind : {EventKind::damage, EventKind::rejected}) {
    for (const std::uint32_t report : run.history().of(kind)) {
      if (report >= before) break;
      const Event& event = run.event(report);
      reports.push_back({.id = {.step = event.a, .attempt = event.b, .trial = event.c},
                         .attempt = event.attempt,
                         .is_rejection = kind == EventKind::rejected,
                         .explained = explained(run, report)});
    }
  }
  return reports;
}

// A rejection goes by the damage that its own attempt reported, or, if that only marked again what an earlier one
// found, by what explains any report ahead of it.
bool has_reason(const std::vector<DamageReport>& reports, const DamageReport& report) {
  if (!report.is_rejection) return report.explained;
  const auto is_of_own_damage = [&](const DamageReport& other) {
    return other.id == report.id && other.attempt == report.attempt && !other.is_rejection;
  };
  const bool found_itself = std::ranges::any_of(reports, is_of_own_damage);
  return std::ranges::any_of(reports, [&](const DamageReport& other) {
    if (found_itself) return is_of_own_damage(other) && other.explained;
    return other.id == report.id && other.attempt <= report.attempt && other.explained;
  });
}

// The checkpoints of which damage was reported before this attempt chose, with a reason: by itself, or by an earlier
// one that has rejected them.
std::vector<CheckpointId> reported_damage(const Case& run, std::size_t found) {
  const std::vector<DamageReport> reports = damage_reports(run, found);
  std::vector<CheckpointId> reported;
  for (const DamageReport& report : reports) {
    const bool counts = report.is_rejection || report.attempt == run.event(found).attempt;
    if (counts && has_reason(reports, report)) reported.push_back(report.id);
  }
  return reported;
}

// The step that an attempt must not choose behind, when `highest` is the newest that was acknowledged: the newest one
// whose checkpoint nobody has reported as damaged and retention has not taken.
std::int64_t readable_before(const Case& run, std::size_t found, std::int64_t highest) {
  std::vector<CheckpointId> gone = reported_damage(run, found);
  const auto reported = [&](const CheckpointId& id) { return id.step == highest; };
  if (std::none_of(gone.begin(), gone.end(), reported)) return highest;
  for (const std::uint32_t retired : run.history().of(EventKind::retired)) {
    const Event& event = run.event(retired);
    if (retired < found) gone.push_back({.step = event.a, .attempt = event.b, .trial = event.c});
  }
  std::int64_t step = -1;
  for (const std::uint32_t save : run.history().of(EventKind::acknowledged)) {
    if (save >= found) break;
    const auto id = checkpoint_id_from(run.history().text(run.event(save).name));
    if (id && std::find(gone.begin(), gone.end(), *id) == gone.end()) step = std::max(step, id->step);
  }
  return std::min(step, highest);
}

}  // namespace

Verdict judge_acknowledged_is_durable(const Case& run) {
  ProbeCounts counts;
  Acknowledged at_probes(run);
  std::int64_t due = -1;
  const auto too_old = [&](std::uint32_t position, const ProbeResult& probe) {
    due = at_probes.before(position);
    if (run.storage_damaged_before(position)) due = undamaged_before(run, position, due);
    if (due < 0) return ProbeAnswer::not_judged;
    if (probe.view == ProbeView::power_fails && run.sync_lied_before(position)) return ProbeAnswer::not_judged;
    const bool right = probe.outcome == ProbeOutcome::found && probe.found.step >= due;
    return right ? ProbeAnswer::right : ProbeAnswer::wrong;
  };
  const auto turns = {EventKind::acknowledged, EventKind::floor_lowered, EventKind::fault_fired};
  if (const auto wrong = first_wrong_probe(run, turns, counts, too_old)) {
    const Event& event = run.event(*wrong);
    const ProbeResult& probe = run.history().probe(event);
    return Verdict::fail(counts.total(), fmt::format("{}, view {}: step {} was acknowledged, and {}", place_of(event),
                                                     to_string(probe.view), due, what_probe_says(probe)));
  }
  std::int64_t starts = 0;
  Acknowledged at_starts(run);
  for (const std::uint32_t position : run.history().of(EventKind::found)) {
    const AttemptSpan* attempt = run.attempt_at(position);
    std::int64_t step = std::max(at_starts.before(position), attempt ? attempt->floor : -1);
    if (step < 0) continue;
    ++starts;
    const Event& event = run.event(position);
    if (event.a >= step) continue;
    step = readable_before(run, position, step);
    if (event.a >= step) continue;
    const std::string chosen = event.a < 0 ? "nothing" : fmt::format("step {}", event.a);
    return Verdict::fail(counts.total() + starts,
                         fmt::format("rank {}, attempt {} resumes from {} although step {} was acknowledged",
                                     event.rank, event.attempt, chosen, step));
  }
  return Verdict::pass(counts.total() + starts, counts.in_words(run.plan().world));
}

}  // namespace firedrill
