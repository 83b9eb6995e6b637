// Stragglers: a rank whose node computes, copies or reads much more slowly than those of the others.
//
// Ranks take turns, so that they do not slow each other down, in several rounds. A rank is suspected of a kind of work
// if in every round it is in the slower half and takes `ratio` times as long as the median. Suspects are then measured
// again in turns with the median rank, and one is an outlier only if it takes `ratio` times as long as that each time.
//
// False alarms: whatever else runs on the machines, if it slows all ranks alike (each order of the ranks' times in a
// round is equally likely, rounds being independent), one rank is in the slower half of k rounds with a chance of at
// most 2^-k, and slower in c pairs with 2^-c. Of n ranks one is blamed with at most n 2^-(k+c); c is chosen so that
// this is at most one in a thousand for each kind of work. The ratio makes it rarer still.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "harness/preflight/finding.h"

namespace firedrill::preflight {

inline constexpr double straggler_ratio = 2;
inline constexpr int straggler_rounds = 3;
inline constexpr double false_alarms = 1e-3;  // of one kind of work, at most

enum class WorkOfRank : std::uint8_t { compute, memory, input };
inline constexpr std::array works_of_rank = {WorkOfRank::compute, WorkOfRank::memory, WorkOfRank::input};
std::string_view to_string(WorkOfRank work);

// Seconds for a unit of one kind of work.
struct PairOfTimes {
  double suspect = 0;
  double reference = 0;
};
struct Suspicion {
  WorkOfRank work = WorkOfRank::compute;
  int rank = 0;
  int reference = 0;  // the median rank
  std::vector<PairOfTimes> again;
};
using Rounds = std::vector<std::vector<double>>;  // by round, by rank

// How many pairs confirm a suspicion among so many ranks.
int confirmations(int ranks);
// Ranks to look at again; without their pairs.
std::vector<Suspicion> suspects(WorkOfRank work, const Rounds& rounds);
bool confirmed(const Suspicion& suspicion);

struct StragglerMeasured {
  std::array<Rounds, works_of_rank.size()> rounds;
  std::vector<Suspicion> suspicions;
};
void to_json(Json& json, const StragglerMeasured& measured);
void from_json(const Json& json, StragglerMeasured& measured);

std::vector<Finding> judge_stragglers(const StragglerMeasured& measured);

}  // namespace firedrill::preflight
