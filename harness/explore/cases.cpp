#include "harness/explore/cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/explore/record.h"

namespace firedrill {
namespace {

using Tell = std::function<void(std::string_view)>;

// Empty: a trace and the oracle can tell of it.
std::string_view why_not(FaultKind kind) {
  switch (kind) {
    case FaultKind::bit_flip_at_rest:
    case FaultKind::file_vanishes: return "no trace holds what happens to a file behind everybody's back";
    case FaultKind::lying_sync: return "no system survives a power loss on storage that lies about its syncs";
    case FaultKind::stale_listing:
    case FaultKind::stale_stat:
    case FaultKind::late_visibility: return "a trace holds one view of the disk, not who saw it late";
    default: return {};
  }
}

// The newest checkpoint that these operations acknowledged.
std::optional<CheckpointId> acknowledged_in(const crash::Trace& trace, const std::vector<crash::OperationId>& these) {
  std::optional<CheckpointId> newest;
  for (const crash::OperationId id : these) {
    const crash::Operation& operation = trace.operations[id];
    if (operation.kind != crash::OperationKind::acknowledged) continue;
    if (!newest || *newest < operation.checkpoint) newest = operation.checkpoint;
  }
  return newest;
}

int attempts_in(const crash::Trace& trace) {
  int attempts = 1;
  for (const crash::Program& program : trace.programs) attempts = std::max(attempts, program.attempt);
  return attempts;
}

Error beyond_the_run(const crash::Trace& trace, const CrashSpec& spec) {
  std::int64_t last = -1;
  for (const crash::Operation& operation : trace.operations) {
    if (trace.programs[operation.program].attempt == spec.attempt) last = std::max(last, operation.step);
  }
  const std::string reach =
      last < 0 ? std::string()
               : fmt::format(", and attempt {} changes the disk for the last time at step {}", spec.attempt, last);
  return Error{.code = Code::invalid_input,
               .message = fmt::format("crash.from is step {} of attempt {}, where nothing is left to lose: the run's "
                                      "last attempt is {}{}",
                                      spec.step, spec.attempt, attempts_in(trace), reach),
               .hint = "give crash.from a place within the run"};
}

Result<crash::Trace> run_to_look_at(const ExploreSubject& subject, const CrashSpec& spec,
                                    const std::optional<crash::Trace>& kept, const Tell& progress) {
  const std::string owner = trace_owner(subject.plan(), spec);
  if (kept) {
    if (kept->owner == owner) return *kept;
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("the trace is that of another run: its key is {}, and that of this scenario "
                                        "with its job, layout, seed, mutant and crash section {}",
                                        kept->owner.empty() ? "missing" : kept->owner, owner),
                 .hint = "name another file, or remove it and record the run again"};
  }
  if (progress) progress("recording the run");
  FD_TRY(RecordedRun run, record_run(subject, subject.plan()));
  if (!run.finished && subject.plan().mutant.empty()) {
    return Error{.code = Code::unavailable, .message = "the run to look at did not finish: " + run.why};
  }
  run.trace.owner = owner;
  return std::move(run.trace);
}

// None: the kill came too late to hit anything.
Result<std::optional<CrashCase>> case_behind(const FaultSpec& kill, const ExploreSubject& subject,
                                             const CrashSpec& spec) {
  Plan plan = subject.plan();
  plan.faults.push_back(kill);
  FD_TRY(RecordedRun killed, record_run(subject, plan));
  const bool again = killed.attempts > spec.attempt;
  if (!killed.finished && (!again || plan.mutant.empty())) {
    return Error{.code = Code::unavailable,
                 .message = fmt::format("with {} the run did not get to its end: {}", describe(kill), killed.why),
                 .hint = "recovery.budget must leave an attempt after the kill"};
  }
  if (!again) return std::optional<CrashCase>();
  CrashCase one{.trace = std::move(killed.trace), .certain = {}, .attempts = killed.attempts};
  one.certain = operations_before(one.trace, spec.attempt + 1, 0);
  return std::optional(std::move(one));
}

}  // namespace

std::vector<std::string> refusals_for_crashcheck(const Plan& plan) {
  std::vector<std::string> refusals;
  for (const FaultSpec& fault : plan.faults) {
    const std::string_view why = why_not(fault.kind);
    if (why.empty()) continue;
    refusals.push_back(fmt::format(
        "{}:{}: crashcheck cannot judge {}: {}; take it out of the faults, or look at it with `firedrill run`",
        plan.scenario_path, fault.line, to_string(fault.kind), why));
  }
  return refusals;
}

std::string trace_owner(const Plan& plan, const CrashSpec& spec) {
  Plan same = plan;
  same.scenario_path.clear();
  same.settings.clear();
  for (FaultSpec& fault : same.faults) fault.line = 0;
  const std::string text = fmt::format("{} from {} {} settled {} {} node_caches {} torn {} kill_everywhere {} twice {}",
                                       to_json(same), spec.attempt, spec.step, spec.settled, to_string(spec.profile),
                                       spec.node_caches, spec.torn, spec.kill_everywhere, spec.twice);
  return digest_of(text).hex();
}

Result<CrashCases> cases_of(const ExploreSubject& subject, const CrashSpec& spec,
                            const std::optional<crash::Trace>& kept, const Tell& progress) {
  CrashCases found;
  FD_TRY(found.recorded, run_to_look_at(subject, spec, kept, progress));
  std::vector<crash::OperationId> certain = operations_before(found.recorded, spec.attempt, spec.step);
  if (certain.size() == found.recorded.operations.size()) return beyond_the_run(found.recorded, spec);
  if (!spec.kill_everywhere) {
    CrashCase one{.trace = found.recorded, .certain = std::move(certain), .attempts = attempts_in(found.recorded)};
    if (spec.settled) {
      one.required = acknowledged_in(one.trace, one.certain);
      one.trace = settled(one.trace, one.certain);
      one.certain.clear();
    }
    found.cases.push_back(std::move(one));
    return found;
  }
  const std::vector<FaultSpec> kills = kills_behind_each(found.recorded, spec.attempt, spec.step);
  if (kills.empty()) return beyond_the_run(found.recorded, spec);
  for (const FaultSpec& kill : kills) {
    if (progress) progress(fmt::format("recording the run with {}", describe(kill)));
    FD_TRY(std::optional<CrashCase> one, case_behind(kill, subject, spec));
    if (one) {
      found.cases.push_back(*std::move(one));
    } else {
      ++found.kills_late;
    }
  }
  if (found.cases.empty()) {
    return Error{
        .code = Code::invalid_input,
        .message = fmt::format("each of the {} kills came too late to hit anything: nothing to explore", kills.size()),
        .hint = "give crash.from an earlier place"};
  }
  return found;
}

}  // namespace firedrill
