// collectives_agree: the members of a group issue the same calls in the same order.
//
// Verified, where the layout's guard is on: for each step and stream all members that told their calls told as many,
// with the same fingerprints in the same order (operation, sequence, type, count, reduce operation, root, purpose,
// step); the records of a failed attempt agree about each call that two ranks issued, in these and in its phase; and no
// two ranks each wait for the other in a call that the other never issued.
// Excused: what a journaled fault of the attempt made of the call it hit and of those behind it in the rank, if nothing
// of that step or later was saved in the attempt; of the next one, if it doubled the last message of a step, which its
// receiver has yet to take.
// Not verified: calls of a rank that died (it tells nothing), and calls of a failed attempt before those that the ranks
// kept and behind the last step that they told.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/seam/collective_op.h"
#include "harness/check/all.h"
#include "harness/check/waits.h"

namespace firedrill {
namespace {

// The last that a rank sent another in a step went out twice: the other takes it for what comes in the next step.
bool shows_in_the_next_step(const Case& run, const AttemptSpan& attempt, const CallFault& fault) {
  const std::optional<HitCall> hit = hit_call(run, *fault.event);
  if (fault.spec->kind != FaultKind::duplicate_call || !hit || hit->operation != "send") return false;
  std::int64_t sent_so_far = 0;
  std::int64_t sent = 0;
  std::int64_t taken = 0;
  for (const std::uint32_t position : run.history().of(EventKind::calls)) {
    const Event& event = run.event(position);
    if (event.attempt != attempt.number || event.step > fault.event->step) continue;
    if (run.history().text(event.name) != hit->stream) continue;
    const bool of_sender = event.rank == fault.event->rank;
    if (of_sender) sent_so_far += event.a;
    if (event.step == fault.event->step) (of_sender ? sent : taken) = event.a;
  }
  return sent == taken + 1 && sent_so_far == hit->sequence + 2;
}

// Whether a fault explains that `rank` issues other calls of the stream than its peers from `step` on.
bool excused(const Case& run, const AttemptSpan& attempt, int rank, std::string_view stream, std::int64_t step) {
  return std::ranges::any_of(call_faults(run, attempt), [&](const CallFault& fault) {
    if (fault.event->rank != rank || fault.event->step > step || info_of(fault.spec->kind).harm != Harm::call)
      return false;
    const std::optional<HitCall> hit = hit_call(run, *fault.event);
    const bool consequence = step > fault.event->step || (hit && hit->stream == stream);
    Event shown = *fault.event;
    if (consequence && shows_in_the_next_step(run, attempt, fault)) ++shown.step;
    return nothing_saved_after(run, attempt, shown);
  });
}

std::string check_steps(const Case& run, const AttemptSpan& attempt, std::int64_t& checked) {
  std::map<std::pair<NameId, std::int64_t>, const Event*> firsts;
  for (const std::uint32_t position : run.history().of(EventKind::calls)) {
    const Event& event = run.event(position);
    if (event.attempt != attempt.number) continue;
    const auto [first, fresh] = firsts.try_emplace({event.name, event.step}, &event);
    if (fresh) continue;
    ++checked;
    const Event& known = *first->second;
    if (known.a == event.a && known.digest == event.digest) continue;
    const std::string_view stream = run.history().text(event.name);
    if (excused(run, attempt, event.rank, stream, event.step) || excused(run, attempt, known.rank, stream, event.step))
      continue;
    if (known.a != event.a) {
      return fmt::format("attempt {}, step {}: rank {} made {} calls of {}, rank {} made {}", event.attempt, event.step,
                         known.rank, known.a, stream, event.rank, event.a);
    }
    return fmt::format("attempt {}, step {}: ranks {} and {} made other calls of {}", event.attempt, event.step,
                       known.rank, event.rank, stream);
  }
  return {};
}

std::string check_records(const Case& run, const AttemptCalls& calls, std::int64_t& checked) {
  for (const auto& [rank, dump] : calls.dumps) checked += std::ssize(dump.calls);
  const AttemptSpan& attempt = *calls.attempt;
  if (const auto found = first_disagreement(calls)) {
    const std::int64_t step = std::max(found->of_first->step, found->of_other->step);
    const std::string_view stream = found->of_first->stream;
    if (!excused(run, attempt, found->first, stream, step) && !excused(run, attempt, found->other, stream, step)) {
      return fmt::format("attempt {}: rank {} issued {}, and rank {} {}", attempt.number, found->first,
                         describe(*found->of_first), found->other, describe(*found->of_other));
    }
    return {};
  }
  const auto crossed = cross_wait(calls);
  if (!crossed) return {};
  const IssuedCall& own = *crossed->of_first;
  const IssuedCall& others = *crossed->of_other;
  const std::int64_t step = std::max(own.step, others.step);
  if (excused(run, attempt, crossed->first, own.stream, step)) return {};
  if (excused(run, attempt, crossed->other, others.stream, step)) return {};
  // Both may wait because of a third, whose call a fault hit.
  for (const auto& [rank, dump] : calls.dumps) {
    if (excused(run, attempt, rank, own.stream, step)) return {};
  }
  return fmt::format("attempt {}: rank {} waits in {} while rank {} waits in {}, and neither issued the other's",
                     attempt.number, crossed->first, describe(own), crossed->other, describe(others));
}

}  // namespace

Verdict judge_collectives_agree(const Case& run) {
  std::int64_t checked = 0;
  for (const AttemptSpan& attempt : run.attempts()) {
    std::string wrong = check_steps(run, attempt, checked);
    if (wrong.empty() && told_calls(run, attempt)) wrong = check_records(run, calls_of(run, attempt), checked);
    if (!wrong.empty()) return Verdict::fail(checked, std::move(wrong));
  }
  return Verdict::pass(checked, checked > 0 ? "" : "no guard was on (layout.guard)");
}

}  // namespace firedrill
