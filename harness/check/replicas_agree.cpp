// replicas_agree: ranks that hold the same hold the same bits.
//
// Verified: after every step, any two ranks of an attempt that hold a tensor (or the same run of one) hold it with the
// same digest; and whatever the engine's own comparison of replicas found was no difference.
// Excused: what a fault did directly to one replica, and, where the guard compares calls, the step in which a fault
// changed a call, if its attempt ended before that was saved or acknowledged.
// Not verified: that what all replicas hold alike is right (resume_equals_golden); what replicas hold between two
// steps.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/check/all.h"

namespace firedrill {
namespace {

struct Held {
  Digest digest;
  int rank = 0;
};

// The steps of one attempt, as they are done.
class Replicas {
 public:
  explicit Replicas(const Case& run) : run_(run) {}

  // The state of one rank after one step; what it differs in from another's, if it does.
  std::string add(const Event& event) {
    if (event.attempt != attempt_) steps_.clear();
    attempt_ = event.attempt;
    const StateId state = run_.states().find(event.digest);
    if (state == no_state) return {};
    for (const StateTensor& tensor : run_.states().tensors(state)) {
      const Held mine{.digest = tensor.digest, .rank = event.rank};
      const auto [place, fresh] = steps_[event.step].try_emplace(tensor.name, mine);
      if (fresh || place->second.digest == tensor.digest) continue;
      return fmt::format("ranks {} and {} hold other bits of {} after step {}, attempt {}", place->second.rank,
                         event.rank, run_.history().text(tensor.name), event.step, event.attempt);
    }
    return {};
  }

 private:
  const Case& run_;
  std::int32_t attempt_ = -1;
  std::map<std::int64_t, std::map<NameId, Held>> steps_;
};

// States that are all within one whole agree with each other; nothing more needs to be looked at then.
bool all_right(const Case& run) {
  return std::ranges::all_of(run.history().of(EventKind::step_done), [&run](std::uint32_t position) {
    const Event& event = run.event(position);
    const StateId golden = run.golden(event.step);
    const StateId state = run.states().find(event.digest);
    return golden != no_state && state != no_state && run.states().within(state, golden);
  });
}

}  // namespace

Verdict judge_replicas_agree(const Case& run) {
  auto checked = static_cast<std::int64_t>(run.history().of(EventKind::step_done).size());
  Replicas replicas(run);
  const bool equal = all_right(run);
  for (const std::uint32_t position : run.history().of(EventKind::step_done)) {
    if (equal) break;
    const std::string wrong = replicas.add(run.event(position));
    if (!wrong.empty() && !run.replica_damage_excused(position)) return Verdict::fail(checked, wrong);
  }
  for (const std::uint32_t position : run.history().of(EventKind::replicas_compared)) {
    const Event& event = run.event(position);
    ++checked;
    if (event.b == -1 || run.replica_damage_excused(position)) continue;
    return Verdict::fail(checked,
                         fmt::format("{}: the replicas of {} differ", place_of(event), run.history().text(event.name)));
  }
  return Verdict::pass(checked);
}

}  // namespace firedrill
