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

#include "engine/seam/checkpoint_id.h"
#include "harness/check/verdict.h"
#include "harness/history/history.h"
#include "harness/plan/plan.h"

namespace firedrill {

struct AttemptSpan {
  std::int32_t number = 0;
  std::size_t begin = 0;  // position of its attempt_started
  std::size_t end = 0;    // position of the next attempt's start, or the history's size
  std::int64_t world_size = 0;
  std::int64_t floor = -1;         // what the supervisor handed over
  const Layout* layout = nullptr;  // the one it had, of the plan's
};

class Case {
 public:
  Case(const History& history, const Plan& plan);

  const History& history() const { return history_; }
  const Plan& plan() const { return plan_; }
  const StateTable& states() const { return history_.tables().states; }
  const Event& event(std::size_t position) const { return history_[position]; }
  // Positions of the events of one kind from `begin` on and ahead of `end`, ascending.
  std::span<const std::uint32_t> of(EventKind kind, std::size_t begin, std::size_t end) const;

  // The golden's state after `step`; no_state if the history does not hold it.
  StateId golden(std::int64_t step) const;
  bool has_golden() const { return has_golden_; }
  // In the order of their starts.
  std::span<const AttemptSpan> attempts() const { return attempts_; }
  // The layout of the attempt with that number; the plan's first where there was none.
  const Layout& layout_of(int attempt) const;
  // The attempt under way at a position; nullptr before the first.
  const AttemptSpan* attempt_at(std::size_t position) const;

  // Damage that a journaled fault did to what is stored, in the order of the journal. Losing what was never synced is
  // legal and no damage; an injected error damages only files that the engine must then leave unpublished.
  struct Damage {
    std::size_t position = 0;        // of its fault_fired
    std::optional<CheckpointId> id;  // whose file it hit; absent: none that belongs to a checkpoint
    bool at_rest = false;            // it had been stored well; else the write itself went wrong
  };
  std::span<const Damage> damage() const { return damage_; }
  bool storage_damaged_before(std::size_t position) const {
    return !damage_.empty() && damage_.front().position < position;
  }
  // A fault hit a file of it, by a write or later.
  bool damaged_before(std::size_t position, const CheckpointId& id) const;
  // A fault hit a file of it that was stored well: what nobody can foresee, so it may have been acknowledged.
  bool lost_before(std::size_t position, const CheckpointId& id) const;
  // A sync lied before: what a power loss would leave then is nobody's fault but the disk's.
  bool sync_lied_before(std::size_t position) const { return lied_from_ < position; }
  // Whether a wrong state at this position is what a journaled fault itself did: it damaged one replica directly (its
  // parameters or moments, or a payload behind the reduction), and its attempt ended before anything of that was
  // committed, dispatched to be saved or acknowledged; or it changed a compared call, and nothing was committed.
  bool replica_damage_excused(std::size_t position) const;
  // The spec of a fault_planned or fault_fired event; nullptr if the plan has no such index.
  const FaultSpec* fault(const Event& event) const;

 private:
  const History& history_;
  const Plan& plan_;
  std::vector<StateId> golden_;  // by step
  bool has_golden_ = false;
  std::vector<AttemptSpan> attempts_;
  std::vector<Damage> damage_;
  std::size_t lied_from_;
};

struct Property {
  std::string_view name;
  std::string_view summary;
  Verdict (*judge)(const Case& run);
};

// "step 4, rank 2, attempt 1": where an event happened, for evidence.
std::string place_of(const Event& event);

}  // namespace firedrill
