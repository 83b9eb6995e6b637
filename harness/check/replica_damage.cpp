// What of wrong states is a fault's own doing: see Case::replica_damage_excused.
#include <algorithm>
#include <array>

#include "harness/check/property.h"

namespace firedrill {
namespace {

bool hits_one_replica(const FaultSpec& fault) {
  if (fault.kind == FaultKind::corrupt_payload) return true;
  if (fault.kind != FaultKind::bit_flip && fault.kind != FaultKind::nan) return false;
  return fault.target == Target::parameter || fault.target == Target::moment;
}

// A rank that made another call than its peers ends the step with other numbers, and so do those that it reduces with
// in other groups in that step. Where calls are compared that is found before the next step is over; where they are
// not, only the rank's own state is excused (see resume_equals_golden). What is dispatched meanwhile to be saved the
// others never commit: they miss that call. One that gave up made no other call, and completes no step.
bool in_step_of_a_compared_call(const AttemptSpan& attempt, const FaultSpec& fault, const Event& fired,
                                const Event& state) {
  return info_of(fault.kind).harm == Harm::call && fault.kind != FaultKind::early_abort &&
         attempt.layout->guard == Guard::check &&
         (state.kind == EventKind::step_done || state.kind == EventKind::save_dispatched) && state.step == fired.step;
}

// A state of the fault's step or a later one was kept, or is about to be.
bool saved_behind(const Case& run, const AttemptSpan& attempt, std::size_t fired, bool dispatched_too) {
  const Event& fault = run.event(fired);
  for (const EventKind kind : {EventKind::committed, EventKind::acknowledged, EventKind::save_dispatched}) {
    if (kind == EventKind::save_dispatched && !dispatched_too) continue;
    const auto all = run.history().of(kind);
    const auto begin = std::upper_bound(all.begin(), all.end(), fired);
    const bool saved = std::any_of(begin, all.end(), [&](std::size_t at) {
      return at < attempt.end && run.event(at).attempt == fault.attempt && run.event(at).step >= fault.step;
    });
    if (saved) return true;
  }
  return false;
}

// In the first step behind the fault that went wrong, another rank's state is right: so one replica has the damage, and
// no reduction had spread it to all alike. Also where no step went wrong: the payload was one of the comparison's own.
bool stayed_with_one(const Case& run, const AttemptSpan& attempt, std::size_t fired) {
  const auto done = run.history().of(EventKind::step_done);
  const auto right = [&run](const Event& event) {
    const StateId golden = run.golden(event.step);
    const StateId state = run.states().find(event.digest);
    return golden != no_state && state != no_state && run.states().within(state, golden);
  };
  std::int64_t wrong_step = -1;
  for (auto at = std::upper_bound(done.begin(), done.end(), fired); at != done.end() && *at < attempt.end; ++at) {
    const Event& event = run.event(*at);
    if (right(event)) continue;
    if (wrong_step < 0 || event.step < wrong_step) wrong_step = event.step;
  }
  if (wrong_step < 0) return true;
  return std::any_of(done.begin(), done.end(), [&](std::size_t at) {
    const Event& event = run.event(at);
    return at >= attempt.begin && at < attempt.end && event.step == wrong_step && right(event);
  });
}

}  // namespace

bool Case::replica_damage_excused(std::size_t position) const {
  const AttemptSpan* attempt = attempt_at(position);
  if (!attempt) return false;
  for (const std::uint32_t fired : history_.of(EventKind::fault_fired)) {
    if (fired < attempt->begin || fired >= position) continue;
    const FaultSpec* spec = fault(event(fired));
    if (!spec || event(fired).attempt != attempt->number) continue;
    const bool by_call = in_step_of_a_compared_call(*attempt, *spec, event(fired), event(position));
    if (!by_call && !hits_one_replica(*spec)) continue;
    if (saved_behind(*this, *attempt, fired, !by_call)) continue;
    if (spec->kind != FaultKind::corrupt_payload || stayed_with_one(*this, *attempt, fired)) return true;
  }
  return false;
}

}  // namespace firedrill
