#include "harness/run/outcome.h"

#include <fmt/format.h>

#include <utility>

#include "engine/job/placement.h"
#include "harness/check/attribution.h"
#include "harness/run/timeline.h"

namespace firedrill {
namespace {

std::string reason_of(RunVerdict verdict, const RunOutcome& outcome, const std::vector<Judged>& judged) {
  if (verdict == RunVerdict::pass) return {};
  if (outcome.check_failed) return fmt::format("a check in the engine failed: {}", outcome.why);
  if (verdict == RunVerdict::liveness) return outcome.why;
  const Judged* bad = first_bad(judged);
  return bad == nullptr ? outcome.why : fmt::format("{}: {}", bad->property->name, bad->verdict.evidence);
}

}  // namespace

RunVerdict verdict_of(const RunOutcome& outcome, const std::vector<Judged>& judged) {
  if (outcome.check_failed) return RunVerdict::fail;
  const Outcome properties = overall(judged);
  if (properties == Outcome::fail) return RunVerdict::fail;
  if (!outcome.finished) return RunVerdict::liveness;
  return properties == Outcome::unknown ? RunVerdict::unknown : RunVerdict::pass;
}

const Judged* first_bad(const std::vector<Judged>& judged) {
  for (const Outcome bad : {Outcome::fail, Outcome::unknown}) {
    for (const Judged& each : judged) {
      if (each.verdict.outcome == bad) return &each;
    }
  }
  return nullptr;
}

RunReport report_of(const Case& run, const RunOutcome& outcome, const std::vector<Judged>& judged) {
  const Plan& plan = run.plan();
  const History& history = run.history();
  RunReport report{.scenario = plan.scenario_path.empty() ? plan.scenario : plan.scenario_path,
                   .world = std::string(to_string(plan.world)),
                   .layout = to_string(plan.layout),
                   .seed = plan.seed,
                   .mutant = plan.mutant};
  report.verdict = verdict_of(outcome, judged);
  report.reason = reason_of(report.verdict, outcome, judged);
  report.expected = to_string(plan.expect);
  if (const auto final_state = final_state_of(history, plan.job.steps)) report.final_digest = final_state->hex();
  if (const auto difference = first_difference(run))
    report.first_difference = {.tensor = difference->tensor, .step = difference->step};
  for (const FaultSpec& fault : plan.faults)
    report.planned.push_back({.fault = describe(fault), .may_not_fire = fault.may_not_fire});
  report.fired = fired_in(history);
  for (const Judged& each : judged)
    report.properties.push_back({.name = std::string(each.property->name),
                                 .verdict = std::string(to_string(each.verdict.outcome)),
                                 .checked = each.verdict.checked,
                                 .evidence = each.verdict.evidence});
  report.attempts = timeline_of(history);
  report.accounting = account_of(history, plan);
  for (const GroupPlacement& group : placement_of(plan.job, plan.layout))
    report.placement.push_back(
        {.group = group.group, .ranks = group.size, .nodes = group.nodes, .words = to_string(group)});
  report.warnings = warnings_of(plan.job, plan.layout);
  for (const Blame& blame : attribution_of(run)) report.attribution.push_back(line_of(blame));
  return report;
}

}  // namespace firedrill
