// Property: a pure function of a run's history (and of the plan it followed) to a Verdict. One file each; all are
// listed in properties.h.
//
// Case is what a property is given: the history, the plan, and what every property would else gather anew: the golden's
// states by step, the attempts, the checkpoints' acknowledgements. Building one costs a few microseconds.
//
// Threads: one per history. A property never throws on purpose; what it throws makes it unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/check/verdict.h"
#include "harness/history/history.h"
#include "harness/plan/plan.h"

namespace firedrill {

struct AttemptSpan {
  std::int32_t number = 0;
  std::size_t begin = 0;  // position of its attempt_started
  std::size_t end = 0;    // position of the next attempt's start, or the history's size
  std::int64_t world_size = 0;
  std::int64_t floor = -1;  // what the supervisor handed over
};

class Case {
 public:
  Case(const History& history, const Plan& plan);

  const History& history() const { return history_; }
  const Plan& plan() const { return plan_; }
  const StateTable& states() const { return history_.tables().states; }
  const Event& event(std::size_t position) const { return history_[position]; }

  // The golden's state after `step`; no_state if the history does not hold it.
  StateId golden(std::int64_t step) const;
  bool has_golden() const { return has_golden_; }
  // In the order of their starts.
  std::span<const AttemptSpan> attempts() const { return attempts_; }
  // The attempt under way at a position; nullptr before the first.
  const AttemptSpan* attempt_at(std::size_t position) const;

  // A journaled fault before `position` that may damage what is stored (not one that only loses what was never synced:
  // a correct engine survives that).
  bool storage_damaged_before(std::size_t position) const;
  // The spec of a fault_planned or fault_fired event; nullptr if the plan has no such index.
  const FaultSpec* fault(const Event& event) const;

 private:
  const History& history_;
  const Plan& plan_;
  std::vector<StateId> golden_;  // by step
  bool has_golden_ = false;
  std::vector<AttemptSpan> attempts_;
  std::size_t damaged_from_;
};

struct Property {
  std::string_view name;
  std::string_view summary;
  Verdict (*judge)(const Case& run);
};

// "step 4, rank 2, attempt 1": where an event happened, for evidence.
std::string place_of(const Event& event);

}  // namespace firedrill
