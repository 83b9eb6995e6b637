// partial_never_discoverable: whatever moment the run is stopped at, discovery never yields a checkpoint that is not
// whole and right.
//
// Verified: for every probe (after each operation that changed the disk; in both views where the world offers both),
// what discovery returned is whole by the audit, which decodes it without the engine's code, and holds exactly the
// golden's tensors of its step; no checkpoint is committed that is not whole, even if discovery would step back to an
// older one, but for those whose files a fault damaged; and discovery did not fail, unless all that is listed is
// damaged by faults. Excused: what a power loss would leave once a sync has lied. Not verified: moments between two
// operations, because the disk does not change there; what a power loss may leave besides the one state of the view
// (all that was not synced is lost), which crashcheck enumerates.
#include <fmt/format.h>

#include <algorithm>

#include "harness/check/all.h"
#include "harness/check/probe_counts.h"

namespace firedrill {
namespace {

// Why a found checkpoint is wrong; empty: it is right. `unknown` is set if that cannot be told.
std::string wrong_with(const Case& run, const ProbeResult& probe, bool& unknown) {
  if (!probe.complete) return fmt::format("it is not whole: {}", probe.reason);
  const StateId golden = run.golden(probe.found.step);
  if (golden == no_state) {
    if (probe.found.step < 1 || probe.found.step > run.plan().job.steps) return "the job has no such step";
    unknown = true;
    return "the history holds no golden of that step";
  }
  if (probe.state == no_state) {
    unknown = true;
    return "its tensors were not described";
  }
  if (run.states().equal(probe.state, golden)) return {};
  const auto difference = run.states().difference(probe.state, golden, true);
  return difference ? fmt::format("tensor {} {} (found, golden)", difference->tensor, difference->how)
                    : std::string("its state is not the golden's");
}

// A checkpoint that discovery lists, neither given up nor being deleted, and that is not whole. Discovery may step back
// to an older one, but a correct protocol never commits it, unless the storage damaged it on its way.
std::string standing_partial(const Case& run, std::size_t position, const ProbeResult& probe) {
  for (const SeenCheckpoint& seen : probe.seen) {
    if (!seen.intact && !run.damaged_before(position, seen.id))
      return fmt::format("checkpoint {} is committed and not whole", to_string(seen.id));
  }
  return {};
}

// Discovery has nothing to step back to: nothing whole is listed, and faults damaged what is.
bool may_fail(const Case& run, std::size_t position, const ProbeResult& probe) {
  return run.storage_damaged_before(position) &&
         std::none_of(probe.seen.begin(), probe.seen.end(), [](const SeenCheckpoint& seen) { return seen.intact; });
}

}  // namespace

Verdict judge_partial_never_discoverable(const Case& run) {
  ProbeCounts counts;
  std::string what;
  std::string doubt;
  const auto right = [&](std::uint32_t position, const ProbeResult& probe) {
    if (probe.outcome == ProbeOutcome::error && !may_fail(run, position, probe)) {
      what = fmt::format("discovery fails although nothing was damaged: {}", probe.error);
      return false;
    }
    what = standing_partial(run, position, probe);
    if (!what.empty()) return false;
    if (probe.outcome != ProbeOutcome::found) return true;
    bool unknown = false;
    const std::string wrong = wrong_with(run, probe, unknown);
    if (wrong.empty()) return true;
    what = fmt::format("checkpoint {} is found: {}", to_string(probe.found), wrong);
    if (unknown && doubt.empty()) doubt = what;
    return unknown;
  };
  const auto answer = [&](std::uint32_t position, const ProbeResult& probe) {
    if (probe.view == ProbeView::power_fails && run.sync_lied_before(position)) return ProbeAnswer::not_judged;
    return right(position, probe) ? ProbeAnswer::right : ProbeAnswer::wrong;
  };
  if (const auto wrong = first_wrong_probe(run, {EventKind::fault_fired}, counts, answer)) {
    const Event& event = run.event(*wrong);
    return Verdict::fail(counts.total(), fmt::format("{}, view {}: {}", place_of(event),
                                                     to_string(run.history().probe(event).view), what));
  }
  if (!doubt.empty()) return Verdict::unknown(counts.total(), doubt);
  return Verdict::pass(counts.total(), counts.in_words(run.plan().world));
}

}  // namespace firedrill
