// failures_are_attributed: who is blamed for a failed attempt is who was disturbed.
//
// Verified, where the attempt's layout has the guard on: of each attempt that failed while a journaled fault hit a
// rank, a call or a message of it or what it computed or read, the attribution blames a rank of that fault (of a
// message or link one of its ends; of a node any rank of it), and names the step and the phase in which the fault hit a
// call or a rank; where that was a collective call, also its group, its sequence and its operation. Not verified:
// attempts that other faults hit as well; attempts in which no rank told its calls, as all died or were still meeting;
// attempts whose faults all changed a call for every member of its group alike, by the kind of the fault, so that their
// records may well agree (not: giving up early); which of several faults in one attempt is blamed; the phase of what a
// link does later on; the call whose message was hit.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "engine/job/layout.h"
#include "engine/seam/collective_op.h"
#include "faults/operations.h"
#include "harness/check/all.h"
#include "harness/check/attribution.h"
#include "harness/check/calls.h"

namespace firedrill {
namespace {

// Faults that must be attributed: of calls and messages, of the ranks themselves, of what they compute and read.
bool of_this_family(const FaultSpec& fault) {
  const FaultKindInfo& info = info_of(fault.kind);
  const bool of_work = info.harm == Harm::computation || (info.harm == Harm::error && !of_files(fault.kind));
  return info.harm == Harm::call || info.harm == Harm::message || info.harm == Harm::death || of_work;
}

std::vector<const Event*> faults_in(const Case& run, const AttemptSpan& attempt, bool& others) {
  std::vector<const Event*> faults;
  for (const std::uint32_t position : run.history().of(EventKind::fault_fired)) {
    const Event& event = run.event(position);
    if (event.attempt != attempt.number) continue;
    const FaultSpec* spec = run.fault(event);
    if (spec && of_this_family(*spec)) {
      faults.push_back(&event);
    } else {
      others = true;
    }
  }
  return faults;
}

bool failed(const Case& run, const AttemptSpan& attempt) {
  for (const std::uint32_t position : run.history().of(EventKind::attempt_ended)) {
    const Event& event = run.event(position);
    if (event.attempt == attempt.number) return event.c < attempt.world_size;
  }
  return false;
}

bool names(const Case& run, const Blame& blame, const Event& fault) {
  const FaultSpec& spec = *run.fault(fault);
  const Job& job = run.plan().job;
  if (blame.kind == BlameKind::replica) {
    // Which of two is wrong nobody can tell; and what a message damaged is held by who received it.
    const bool who = blame.ranks.empty() || spec.kind == FaultKind::corrupt_payload ||
                     std::ranges::find(blame.ranks, static_cast<int>(fault.rank)) != blame.ranks.end();
    return who && blame.step >= fault.step;
  }
  const bool of_node = spec.kind == FaultKind::partition || spec.kind == FaultKind::kill_node ||
                       spec.kind == FaultKind::lose_unsynced_data || spec.kind == FaultKind::lose_unsynced_names;
  const bool who = std::ranges::any_of(blame.ranks, [&](int rank) {
    return rank == fault.rank || (of_node && node_of(job, rank) == node_of(job, fault.rank));
  });
  if (!who) return false;
  if (!is_at_call(run, blame, fault)) return false;
  const auto died = blame.died.find(fault.rank);
  if (died != blame.died.end()) return died->second->step == fault.step && died->second->phase == fault.phase;
  // Which call it was tells more than its phase: one that is held back is journaled where another overtook it, and of
  // one that came twice the others name what they were in.
  const bool that_call = info_of(spec.kind).harm == Harm::call && blame.sequence >= 0 && hit_call(run, fault);
  if (that_call) return blame.step == fault.step;
  const bool later_on = info_of(spec.kind).harm == Harm::message && info_of(spec.kind).seams == 0;
  return later_on || (blame.step == fault.step && blame.phase == fault.phase);
}

// What changed a call, and which one, by its stream and sequence.
using ChangedCall = std::tuple<FaultKind, std::string_view, std::int64_t>;

// Nothing: it hit something else, or the rank gave up, which its records show whatever the others do.
std::optional<ChangedCall> changed_call(const Case& run, const Event& fault) {
  const FaultKind kind = run.fault(fault)->kind;
  if (info_of(kind).harm != Harm::call || kind == FaultKind::early_abort) return std::nullopt;
  const auto hit = hit_call(run, fault);
  return hit ? std::optional<ChangedCall>({kind, hit->stream, hit->sequence}) : std::nullopt;
}

// Each fault changed a call for which all other members of the group were hit alike.
bool all_members_were_hit(const Case& run, const std::vector<const Event*>& faults) {
  std::map<ChangedCall, std::set<int>> hit_in;
  for (const Event* fault : faults) {
    const auto changed = changed_call(run, *fault);
    if (!changed) return false;
    hit_in[*changed].insert(fault->rank);
  }
  return std::ranges::all_of(hit_in, [](const auto& hit) {
    const std::vector<int> members = ranks_of_stream(std::get<std::string_view>(hit.first));
    return hit.second.size() > 1 && std::ranges::all_of(members, [&](int rank) { return hit.second.contains(rank); });
  });
}

}  // namespace

Verdict judge_failures_are_attributed(const Case& run) {
  std::int64_t checked = 0;
  for (const AttemptSpan& attempt : run.attempts()) {
    if (attempt.layout->guard == Guard::off || !failed(run, attempt)) continue;
    bool others = false;
    const std::vector<const Event*> faults = faults_in(run, attempt, others);
    if (faults.empty() || others || !told_calls(run, attempt)) continue;
    if (all_members_were_hit(run, faults)) continue;
    ++checked;
    const std::optional<Blame> blame = blame_of(run, attempt);
    const bool right =
        blame && std::ranges::any_of(faults, [&](const Event* fault) { return names(run, *blame, *fault); });
    if (right) continue;
    return Verdict::fail(
        checked, fmt::format("attempt {} ended by {} in step {}, {}, and is explained by: {}", attempt.number,
                             run.history().text(faults.front()->name), faults.front()->step,
                             to_string(faults.front()->phase), blame ? describe(*blame) : std::string("nothing")));
  }
  return Verdict::pass(checked);
}

}  // namespace firedrill
