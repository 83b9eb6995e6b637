// What the supervisor decides between two attempts: on which nodes and in which layout the next one runs, and how long
// it waits. And what the attempts that ended so far have in common. Pure functions of what happened; the supervisor
// acts on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/history/history.h"
#include "harness/world/world.h"

namespace firedrill {

// How an attempt ended, by the rank that ended badly first.
struct Ending {
  int attempt = 0;
  int rank = -1;
  std::int64_t step = 0;
  Phase phase = Phase::none;
  std::string how;    // "killed", or the error
  bool loss = false;  // a rank or a node was lost, not only an error reported
  std::vector<int> nodes_lost = {};
  bool same_place(const Ending& other) const {
    return rank == other.rank && step == other.step && phase == other.phase;
  }
};

// From the events of the attempt, which begin at `from`.
Ending ending_of(const History& history, std::size_t from, int attempt);

// "attempts 2 to 5 all ended at step 7, forward, rank 1: killed"; empty unless at least the last two ended alike.
std::string poison_in(const std::vector<Ending>& endings);

class RecoveryState {
 public:
  explicit RecoveryState(const Plan& plan);

  // What the next attempt is told, but for its number, floor and faults.
  AttemptOrder next(int attempt) const;
  // "nodes 0, 4"; empty while every rank is on the node it began on.
  std::string nodes_in_words() const;
  // Takes the end of an attempt in. Why no further one can run; nothing: one can.
  std::optional<std::string> take(const Ending& ending);

 private:
  const Plan& plan_;
  std::vector<int> nodes_;  // by place
  bool moved_ = false;
  bool lost_ = false;  // with policy fewer: a rank or a node
  int spares_used_ = 0;
  int places_ = 0;
};

}  // namespace firedrill
