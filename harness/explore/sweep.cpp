#include "harness/explore/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "faults/budget.h"
#include "faults/operations.h"
#include "faults/trigger.h"
#include "harness/scenario/fields.h"

namespace firedrill {
namespace {

constexpr std::array<Phase, 7> storage_phases = {Phase::rendezvous, Phase::find,     Phase::restore, Phase::save,
                                                 Phase::commit,     Phase::validate, Phase::retire};

// What `when` and the kind's own options can say.
std::vector<FaultSpec> variants_of(const SweepOptions& options) {
  std::vector<FaultSpec> variants;
  const FaultKindInfo& info = info_of(options.kind);
  const auto add = [&](auto set) {
    FaultSpec fault{.kind = options.kind, .at = {.op = SeamOp::file}, .times = options.times, .may_not_fire = true};
    set(fault);
    variants.push_back(fault);
    // A delay before an operation is one after the operation before it.
    if (!info.has_after || options.kind == FaultKind::slow_disk || options.kind == FaultKind::slow) return;
    fault.at.when = When::after;
    variants.push_back(fault);
  };
  switch (options.kind) {
    case FaultKind::kill_node:
      add([](FaultSpec& fault) { fault.lose_unsynced_data = fault.lose_unsynced_names = true; });
      break;
    case FaultKind::torn_write:
      for (const Part part : {Part::first, Part::middle, Part::last}) add([part](FaultSpec& f) { f.lost = part; });
      break;
    case FaultKind::misdirected_write:
      for (const Landing landing : {Landing::offset, Landing::file})
        add([landing](FaultSpec& f) { f.lands_in = landing; });
      break;
    case FaultKind::slow:
    case FaultKind::slow_disk: add([](FaultSpec& f) { f.delay = std::chrono::milliseconds(50); }); break;
    case FaultKind::late_visibility:
      add([](FaultSpec& f) { f.looks = 1; });
      add([](FaultSpec& f) { f.looks = 4; });
      add([](FaultSpec& f) { f.delay = std::chrono::milliseconds(500); });
      break;
    case FaultKind::clock_skew:
      add([](FaultSpec& f) { f.ahead = std::chrono::hours(1); });
      add([](FaultSpec& f) { f.behind = std::chrono::hours(1); });
      break;
    default: add([](FaultSpec&) {}); break;
  }
  return variants;
}

bool fired(const History& history, std::size_t fault) {
  const auto all = history.of(EventKind::fault_fired);
  return std::any_of(all.begin(), all.end(),
                     [&](std::uint32_t position) { return history[position].a == static_cast<std::int64_t>(fault); });
}

// The attempt in which the fault first fired ended badly, and no planned death explains that.
bool ended_by(const History& history, const Plan& plan, std::size_t fault) {
  const auto fired = history.of(EventKind::fault_fired);
  const auto is_swept = [&](std::uint32_t position) { return history[position].a == static_cast<std::int64_t>(fault); };
  const std::int32_t attempt = history[*std::find_if(fired.begin(), fired.end(), is_swept)].attempt;
  const bool other_death = std::any_of(fired.begin(), fired.end(), [&](std::uint32_t position) {
    const Event& event = history[position];
    return event.attempt == attempt && !is_swept(position) &&
           takes_ranks(plan.faults[static_cast<std::size_t>(event.a)].kind);
  });
  const auto ends = history.of(EventKind::attempt_ended);
  return !other_death && std::any_of(ends.begin(), ends.end(), [&](std::uint32_t position) {
    const Event& event = history[position];
    return event.attempt == attempt && (event.a > 0 || event.b > 0);
  });
}

SweepOutcome outcome_of(const History& history, const Plan& plan) {
  if (!history.of(EventKind::rejected).empty()) return SweepOutcome::stepped_back;
  if (ended_by(history, plan, plan.faults.size() - 1)) return SweepOutcome::restarted;
  return history.of(EventKind::save_failed).empty() ? SweepOutcome::went_on : SweepOutcome::saved_again;
}

Plan with_fault(const Plan& base, const FaultSpec& fault) {
  Plan plan = base;
  plan.faults.push_back(fault);
  plan.settings.push_back(fmt::format("recovery.budget={}", plan.recovery.budget));
  Json faults = Json::array();
  for (const FaultSpec& each : plan.faults) faults.push_back(write_value(each));
  plan.settings.push_back("faults=" + faults.dump());
  return plan;
}

}  // namespace

std::string_view to_string(SweepOutcome outcome) {
  constexpr std::array<std::string_view, 4> names = {"went_on", "saved_again", "restarted", "stepped_back"};
  return names[static_cast<std::size_t>(outcome)];
}

Plan sweep_base(Plan plan, FaultKind kind) {
  std::erase_if(plan.faults, [kind](const FaultSpec& fault) { return fault.kind == kind; });
  for (FaultSpec& fault : plan.faults) fault.may_not_fire = true;
  plan.world = WorldKind::sim;
  ++plan.recovery.budget;
  return plan;
}

std::vector<FaultSpec> sweep_groups(const Plan& base, const SweepOptions& options, int attempts) {
  std::vector<FaultSpec> groups;
  const auto add = [&](FaultSpec group) {
    if (mistakes_in_fault(group, base.job, base.layout).empty()) groups.push_back(std::move(group));
  };
  for (FaultSpec group : variants_of(options)) {
    for (int attempt = 1; attempt <= attempts; ++attempt) {
      group.at.attempt = attempt;
      for (int rank = 0; rank < base.layout.world_size(); ++rank) {
        group.at.rank = rank;
        for (const Phase phase : storage_phases) {
          group.at.phase = phase;
          group.at.step.reset();
          if (!saves(phase)) add(group);
          for (std::int64_t step = 1; saves(phase) && step <= base.job.steps; ++step) {
            group.at.step = step;
            if (save_due(step, base.job)) add(group);
          }
        }
      }
    }
  }
  return groups;
}

std::vector<std::string> mistakes_in_sweep(const Plan& base, const std::vector<FaultSpec>& groups) {
  for (const FaultSpec& group : groups) {
    const Plan plan = with_fault(base, group);
    std::vector<std::string> mistakes = mistakes_in_budget(plan.faults, plan.job, plan.recovery.budget);
    if (!mistakes.empty()) return mistakes;
  }
  return {};
}

// What the run does is told by faults that do nothing: each file operation of a rank fires the one that watches it.
Result<std::vector<std::string>> operations_missed(Session& session, const Plan& base, const SweepOptions& options,
                                                   const std::vector<FaultSpec>& groups) {
  Plan plan = base;
  for (int rank = 0; rank < base.layout.world_size(); ++rank) {
    plan.faults.push_back({.kind = FaultKind::slow_disk,
                           .at = {.attempt = {}, .rank = rank, .op = SeamOp::file},
                           .times = 0,
                           .may_not_fire = true});
  }
  FD_TRY_VOID(session.trial(plan));
  using Spot = std::tuple<int, int, Phase>;     // attempt, rank, phase
  std::set<std::pair<Spot, std::int64_t>> hit;  // with the step; -1: any
  for (const FaultSpec& group : groups) {
    hit.insert({{*group.at.attempt, group.at.rank, *group.at.phase}, group.at.step.value_or(-1)});
  }
  const History& history = session.history();
  std::vector<std::string> missed;
  for (const std::uint32_t position : history.of(EventKind::fault_fired)) {
    const Event& event = history[position];
    if (event.a < std::ssize(base.faults) || event.b < 1 || event.b > file_op_count) continue;
    const auto op = static_cast<FileOp>(event.b - 1);
    const std::string_view path = history.text(event.detail);
    if (!kind_fits(options.kind, {.op = SeamOp::file, .file_op = op, .path = path})) continue;
    const Spot spot{event.attempt, event.rank, event.phase};
    if (hit.contains({spot, event.step}) || hit.contains({spot, -1})) continue;
    std::string words = fmt::format("rank {}, attempt {}, step {}, {}: {}", event.rank, event.attempt, event.step,
                                    to_string(event.phase), to_string(op));
    if (std::find(missed.begin(), missed.end(), words) == missed.end()) missed.push_back(std::move(words));
  }
  return missed;
}

Result<SweptGroup> sweep_group(Session& session, const Plan& base, const FaultSpec& group,
                               const SweepOptions& options) {
  SweptGroup swept;
  for (FaultSpec fault = group; swept.positions < options.limit; ++fault.at.nth) {
    const Plan plan = with_fault(base, fault);
    FD_TRY(Trial trial, session.trial(plan));
    if (!fired(session.history(), plan.faults.size() - 1)) {
      swept.complete = true;
      break;
    }
    ++swept.positions;
    if (trial.verdict == RunVerdict::pass) {
      ++swept.outcomes[outcome_of(session.history(), plan)];
      continue;
    }
    swept.failures.push_back({.plan = plan,
                              .verdict = trial.verdict,
                              .property = std::string(trial.property),
                              .evidence = std::move(trial.evidence)});
  }
  return swept;
}

}  // namespace firedrill
