#include "harness/check/attribution.h"

#include <fmt/format.h>

#include <fmt/ranges.h>
#include <algorithm>

#include "engine/seam/collective_op.h"
#include "harness/check/calls.h"

namespace firedrill {

std::string_view to_string(BlameKind kind) {
  switch (kind) {
    case BlameKind::mismatch: return "mismatch";
    case BlameKind::dead: return "dead";
    case BlameKind::missing: return "missing";
    case BlameKind::link: return "link";
    case BlameKind::replica: return "replica";
    case BlameKind::failed: return "failed";
    case BlameKind::slow: return "slow";
  }
  return "?";
}

std::string_view work_of(Phase phase) {
  switch (phase) {
    case Phase::save:
    case Phase::commit:
    case Phase::validate:
    case Phase::retire: return "checkpoint";
    case Phase::find:
    case Phase::restore:
    case Phase::rendezvous: return "recovery";
    default: return to_string(phase);
  }
}

std::vector<Blame> attribution_of(const Case& run) {
  std::vector<Blame> all;
  for (const AttemptSpan& attempt : run.attempts()) {
    if (auto blame = blame_of(run, attempt)) all.push_back(*std::move(blame));
  }
  return all;
}

namespace {

// The other members that told their calls, at least one, went past the one that was hit without that rank: they had put
// it off, or it was a broadcast, for which nobody waits but for its root, or they had sent what it was to receive.
bool went_past(const Case& run, const HitCall& hit, const Event& fired) {
  const bool from_one = hit.operation == "broadcast" || hit.operation == "recv";
  const std::vector<int> members = ranks_of_stream(hit.stream);
  for (const AttemptSpan& attempt : run.attempts()) {
    if (attempt.number != fired.attempt) continue;
    const AttemptCalls calls = calls_of(run, attempt);
    bool any = false;
    for (const auto& [rank, dump] : calls.dumps) {
      if (rank == fired.rank || std::ranges::find(members, rank) == members.end()) continue;
      const IssuedCall* const issued = dump.find(hit.stream, hit.sequence);
      if (issued == nullptr || (issued->completed && !from_one)) return false;
      any = true;
    }
    return any;
  }
  return false;
}

// It gave up ahead of a receive, for which its sender waits for nothing, in a step whose calls nobody had learned yet.
bool owed_what_nobody_knows(const Case& run, const FaultSpec& fault, const HitCall& hit, const Event& fired) {
  if (fault.kind != FaultKind::early_abort || hit.operation != "recv") return false;
  return std::ranges::any_of(run.attempts(), [&](const AttemptSpan& attempt) {
    if (attempt.number != fired.attempt) return false;
    const AttemptCalls calls = calls_of(run, attempt);
    const auto own = calls.dumps.find(fired.rank);
    return own != calls.dumps.end() && own->second.gave_up && !own->second.gave_up->due;
  });
}

}  // namespace

bool is_at_call(const Case& run, const Blame& blame, const Event& fired) {
  const FaultSpec* const fault = run.fault(fired);
  const std::optional<HitCall> hit = hit_call(run, fired);
  if (fault == nullptr || !hit || blame.sequence < 0) return true;
  if (info_of(fault->kind).harm != Harm::call) {
    const std::int64_t last = hit->sequence + (fault->at.when == When::after ? 1 : 0);
    // What a cut link loses first may be of a later call: that of some is sent by then.
    const bool goes_on = fault->kind == FaultKind::partition;
    return blame.stream != hit->stream || blame.sequence <= last || goes_on || went_past(run, *hit, fired);
  }
  if (blame.stream != hit->stream && owed_what_nobody_knows(run, *fault, *hit, fired)) return true;
  const std::int64_t shows = hit->sequence + (fault->kind == FaultKind::duplicate_call ? 1 : 0);
  // A mismatch names both calls, that of the rank that was hit and that of the others.
  const std::string named = blame.call + " " + blame.what;
  // The other end of a send is in a recv.
  const bool same_operation = hit->operation == "send" || named.find(hit->operation) != std::string::npos;
  return blame.stream == hit->stream && blame.sequence == shows && same_operation &&
         named.find(hit->purpose) != std::string::npos;
}

std::string describe(const Blame& blame) {
  const std::string where = blame.sequence < 0
                                ? std::string("a call")
                                : fmt::format("{} (call {} of {})", blame.call, blame.sequence, blame.stream);
  std::string who = fmt::format("rank{} {}", blame.ranks.size() == 1 ? "" : "s", fmt::join(blame.ranks, ", "));
  const bool one = blame.ranks.size() == 1;
  const std::string place = fmt::format("step {}, {}", blame.step, work_of(blame.phase));
  switch (blame.kind) {
    case BlameKind::mismatch:
      return fmt::format("attempt {}: {} disagree{} about {} at {}: {}", blame.attempt, who, one ? "s" : "", where,
                         place, blame.what);
    case BlameKind::dead:
      return fmt::format("attempt {}: {} died at {}; the others wait in {}", blame.attempt, who, place, where);
    case BlameKind::missing:
      return fmt::format("attempt {}: {} {} missing from {} at {}", blame.attempt, who, one ? "is" : "are", where,
                         place);
    case BlameKind::link:
      return fmt::format("attempt {}: {} lost a message between them in {} at {}", blame.attempt, who, where, place);
    case BlameKind::replica:
      if (blame.ranks.empty())
        return fmt::format("attempt {}: replicas differ at {}: {}", blame.attempt, place, blame.what);
      return fmt::format("attempt {}: {} hold{} other bits than most at {}: {}", blame.attempt, who, one ? "s" : "",
                         place, blame.what);
    case BlameKind::failed:
      return fmt::format("attempt {}: {} failed at {}: {}", blame.attempt, who, place, blame.what);
    case BlameKind::slow: return fmt::format("attempt {}: {} is slow at {}: {}", blame.attempt, who, place, blame.what);
  }
  return {};
}

}  // namespace firedrill
