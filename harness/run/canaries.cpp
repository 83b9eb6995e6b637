#include "harness/run/canaries.h"

#include <fmt/format.h>

#include "harness/run/hunt.h"

namespace firedrill {
namespace {

constexpr std::string_view as_failure = "a failed property";
constexpr std::string_view as_unknown = "unknown: a planned fault did not fire";
constexpr std::string_view as_harness_error = "a harness error: one plan, two histories";

Verdict judge_always_fails(const Case& run) {
  return Verdict::fail(1, fmt::format("{} events, and none of them can help it", run.history().size()));
}

// Among the others, as one of them.
Result<Canary> property_that_fails(Session& session, const Plan& plan) {
  static constexpr Property property{
      .name = "canary_always_fails", .summary = "nothing passes it", .judge = judge_always_fails};
  Canary canary{.name = "property_that_always_fails", .expected = as_failure};
  FD_TRY(const Trial trial, session.trial(plan));
  const Case run(session.history(), plan);
  std::vector<Judged> judged = judge_all(run);
  judged.push_back({.property = &property, .verdict = judge(property, run)});
  const std::optional<Catch> found = catch_of(trial.verdict, judged, property.name);
  canary.reported = found && found->property == property.name ? as_failure : "nothing";
  if (found) canary.evidence = fmt::format("{}: {}", found->property, found->evidence);
  return canary;
}

Result<Canary> fault_that_never_fires(Session& session, Plan plan) {
  Canary canary{.name = "fault_that_never_fires", .expected = as_unknown};
  plan.faults = {{.kind = FaultKind::kill, .at = {.step = plan.job.steps + 1, .phase = Phase::forward}}};
  plan.recovery.budget = 1;
  FD_TRY(const Trial trial, session.trial(plan));
  const bool unknown = trial.verdict == RunVerdict::unknown && trial.property == "faults_fired";
  canary.reported = unknown ? as_unknown : to_string(trial.verdict);
  canary.evidence = trial.evidence;
  return canary;
}

Result<Canary> engine_that_varies(Session& session, Plan plan) {
  Canary canary{.name = "engine_that_is_not_deterministic", .expected = as_harness_error};
  plan.mutant = canary_engines().front().name;
  FD_TRY(const bool same, repeats(session, plan));
  canary.reported = same ? "nothing" : as_harness_error;
  canary.evidence = same ? "two runs gave one history" : "two runs of one plan gave histories of different digests";
  return canary;
}

}  // namespace

Result<bool> repeats(Session& session, const Plan& plan) {
  FD_TRY(const Trial once, session.trial(plan, true));
  FD_TRY(const Trial again, session.trial(plan, true));
  return once.history == again.history;
}

Result<std::vector<Canary>> fly_canaries(Session& session, Plan base) {
  base.faults.clear();
  base.mutant.clear();
  base.world = WorldKind::sim;
  std::vector<Canary> canaries;
  FD_TRY(canaries.emplace_back(), property_that_fails(session, base));
  FD_TRY(canaries.emplace_back(), fault_that_never_fires(session, base));
  FD_TRY(canaries.emplace_back(), engine_that_varies(session, base));
  return canaries;
}

}  // namespace firedrill
