// resume_equals_golden: the run computes what the undisturbed run computes.
//
// Verified: the state after every completed step of every attempt, every restored state, every state dispatched to be
// published and every acknowledged state equals the golden's of the same step, tensor by tensor; at the last step that
// all ranks of an attempt completed, the ranks together hold every tensor of the golden.
// Excused: steps that a rank completed, and saves that it dispatched, behind a call of its own that a journaled fault
// changed, if nothing of that step or later was acknowledged in the attempt; states behind a fault that damaged a
// replica directly, if nothing of its step or later was dispatched, committed or acknowledged; the state of a step in
// which a fault changed a call of any rank while the guard compares calls, if nothing of that step or later was
// committed or acknowledged (dispatched it may be).
// Not verified: that the run reached its last step (liveness; the runner judges it); states between two steps, because
// only completed steps are ever saved or acknowledged.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "harness/check/all.h"
#include "harness/check/calls.h"
#include "harness/check/properties.h"

namespace firedrill {
namespace {

constexpr std::array<EventKind, 4> judged_kinds = {EventKind::step_done, EventKind::restored,
                                                   EventKind::save_dispatched, EventKind::acknowledged};
constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

// The rank went on from a call that a fault had changed, and nobody relied on it.
bool behind_a_changed_call(const Case& run, std::size_t position) {
  const Event& event = run.event(position);
  const AttemptSpan* attempt = run.attempt_at(position);
  if (!attempt || event.kind == EventKind::restored || event.kind == EventKind::acknowledged) return false;
  return std::ranges::any_of(call_faults(run, *attempt), [&](const CallFault& fault) {
    return info_of(fault.spec->kind).harm == Harm::call && fault.event->rank == event.rank &&
           fault.position < position && nothing_saved_after(run, *attempt, *fault.event);
  });
}

struct Scan {
  std::int64_t checked = 0;
  std::size_t departed = nowhere;     // first event whose state is not the golden's
  std::size_t undescribed = nowhere;  // first event whose state, or golden, the history does not know
};

Scan scan(const Case& run) {
  Scan result;
  for (const EventKind kind : judged_kinds) {
    for (const std::uint32_t position : run.history().of(kind)) {
      const Event& event = run.event(position);
      const StateId golden = run.golden(event.step);
      const StateId state = run.states().find(event.digest);
      ++result.checked;
      if (golden == no_state || state == no_state) {
        result.undescribed = std::min<std::size_t>(result.undescribed, position);
      } else if (!run.states().within(state, golden) && !behind_a_changed_call(run, position)) {
        const bool may_be_damaged = kind == EventKind::step_done || kind == EventKind::save_dispatched;
        if (may_be_damaged && run.replica_damage_excused(position)) continue;
        result.departed = std::min<std::size_t>(result.departed, position);
      }
    }
  }
  return result;
}

std::string where(const Event& event) { return fmt::format("{} at {}", to_string(event.kind), place_of(event)); }

// The last step that all ranks of one attempt completed, as positions of their step_done events.
std::vector<std::uint32_t> last_complete_step(const Case& run) {
  const auto attempts = run.attempts();
  std::vector<std::int64_t> ranks;  // by step
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    ranks.assign(static_cast<std::size_t>(std::max(run.plan().job.steps, 0)) + 1, 0);
    const auto done = run.of(EventKind::step_done, attempt->begin, attempt->end);
    for (const std::uint32_t at : done) {
      const std::int64_t step = run.event(at).step;
      if (step >= 0 && step < std::ssize(ranks)) ++ranks[static_cast<std::size_t>(step)];
    }
    const auto last = std::find(ranks.rbegin(), ranks.rend(), attempt->world_size);
    if (last == ranks.rend() || *last == 0) continue;
    const std::int64_t step = ranks.rend() - last - 1;
    std::vector<std::uint32_t> complete;
    std::ranges::copy_if(done, std::back_inserter(complete),
                         [&](std::uint32_t at) { return run.event(at).step == step; });
    return complete;
  }
  return {};
}

// A tensor of the golden that no rank holds, with its step.
std::optional<FirstDifference> uncovered(const Case& run) {
  const std::vector<std::uint32_t> ranks = last_complete_step(run);
  if (ranks.empty()) return std::nullopt;
  const Event& event = run.event(ranks.front());
  const StateId golden = run.golden(event.step);
  if (golden == no_state) return std::nullopt;
  std::vector<StateId> held;
  for (const std::uint32_t position : ranks) {
    held.push_back(run.states().find(run.event(position).digest));
    if (held.back() == no_state) return std::nullopt;
  }
  const auto missing = run.states().missing(held, golden);
  if (!missing) return std::nullopt;
  return FirstDifference{
      .tensor = std::string(*missing), .step = event.step, .how = "is held by no rank", .where = where(event)};
}

FirstDifference difference_at(const Case& run, std::size_t position) {
  const Event& event = run.event(position);
  const auto difference = run.states().difference(run.states().find(event.digest), run.golden(event.step), false);
  FD_CHECK(difference, "states differ and no tensor does");
  return {.tensor = difference->tensor, .step = event.step, .how = difference->how, .where = where(event)};
}

}  // namespace

std::optional<FirstDifference> first_difference(const Case& run) {
  const Scan result = scan(run);
  if (result.departed != nowhere) return difference_at(run, result.departed);
  return uncovered(run);
}

Verdict judge_resume_equals_golden(const Case& run) {
  const Scan result = scan(run);
  const auto fail = [&](const FirstDifference& first) {
    return Verdict::fail(result.checked, fmt::format("first difference: tensor {} after step {} {} (state, golden); {}",
                                                     first.tensor, first.step, first.how, first.where));
  };
  if (result.departed != nowhere) return fail(difference_at(run, result.departed));
  if (result.undescribed != nowhere) {
    const Event& event = run.event(result.undescribed);
    return Verdict::unknown(result.checked,
                            fmt::format("{}: {}", where(event),
                                        run.golden(event.step) == no_state ? "the history holds no golden of that step"
                                                                           : "its state was never described"));
  }
  if (const auto missing = uncovered(run)) return fail(*missing);
  return Verdict::pass(result.checked);
}

}  // namespace firedrill
