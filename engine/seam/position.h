// Where a rank is in its work. Faults are planned at such positions and events are stamped with them, so no fault and
// no event ever depends on a clock.
//
// The engine keeps its rank's Position up to date (PhaseScope); decorators and observers read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace firedrill {

enum class Phase : std::uint8_t {
  none,   // outside of all work: start and end of a rank
  input,  // drawing samples
  forward,
  backward,
  exchange,  // gradients, norms, flags between ranks
  optimizer,
  save,        // shards: create, write, sync, report
  commit,      // manifest: write, sync, rename, sync of its parent
  validate,    // trial restore and the validated mark
  retire,      // tombstones, retention, sweep
  find,        // which checkpoint to resume from
  restore,     // reading it
  rendezvous,  // claiming the attempt, meeting the peers
};
inline constexpr int phase_count = 13;

std::string_view to_string(Phase phase);
constexpr bool is_of_training(Phase phase) { return phase >= Phase::input && phase <= Phase::optimizer; }
constexpr bool is_of_a_publish(Phase phase) { return phase >= Phase::save && phase <= Phase::retire; }
std::optional<Phase> phase_from(std::string_view name);

// Is told when a rank goes from one phase to another, before it does.
class PhaseListener {
 public:
  virtual ~PhaseListener() = default;
  virtual void phase_ends() = 0;
};

struct Position {
  int attempt = 0;
  int rank = 0;
  std::int64_t step = 0;  // the step being computed or saved, from 1; 0 before the first
  Phase phase = Phase::none;
  PhaseListener* listener = nullptr;
};

// Sets the phase for a scope and puts the former one back.
class PhaseScope {
 public:
  PhaseScope(Position& position, Phase phase) : position_(position), before_(position.phase) { enter(phase); }
  ~PhaseScope() { enter(before_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  void enter(Phase phase) {
    if (position_.listener) position_.listener->phase_ends();
    position_.phase = phase;
  }

  Position& position_;
  Phase before_;
};

}  // namespace firedrill
