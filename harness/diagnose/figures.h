// Figures: what the ranks of one run typically spent a step on, from the accounts in its history, as diagnosis compares
// them: each rank's own time (without waiting for peers and without the time in sends), the links between ranks, and
// the calls of groups. Only attempts in one layout count: the one in which most steps were done.
//
// A step counts for a rank if the rank told its account, a save if the rank acknowledged it: one that is killed behind
// its training, in a save, takes both with it, and its times are then not known; they are not zero.
//
// What is typical of a rank is the lower quartile over its steps. Disturbances from outside only ever add time, to some
// steps; what slows a rank itself is in all of them. So a cause is seen if it was there in three quarters of the steps.
// Of fewer than `few` samples (saves, short runs), and of an exchange, it is the least.
//
// Times are nanoseconds, virtual in the sim world. Threads: pure functions. Errors: none; a history without accounts
// gives figures without ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/history/accounting.h"
#include "harness/plan/plan.h"

namespace firedrill {

// What a step consists of, in the order in which a person looks at it. The checkpoint is the writing of shards: the
// other phases of a save are the coordinator's.
enum class StepPart : std::uint8_t { input, forward, backward, exchange, optimizer, checkpoint };
inline constexpr std::array step_parts = {StepPart::input,    StepPart::forward,   StepPart::backward,
                                          StepPart::exchange, StepPart::optimizer, StepPart::checkpoint};
std::string_view to_string(StepPart part);

struct PartOfRank {
  std::int64_t own = 0;
  std::int64_t waiting = 0;
};

struct RankFigures {
  int rank = 0;
  int stage = 0;  // of its pipeline
  int node = 0;
  int steps = 0;  // of which it left an account; 0: its times are not known
  int saves = 0;  // of these with a save that it wrote and acknowledged; 0: what a checkpoint takes is not known
  std::array<PartOfRank, step_parts.size()> parts;
  std::int64_t per_file_change = 0;  // the checkpoint's own time for one operation that changes the disk
  std::int64_t step = 0;             // of all parts but the checkpoint, waiting and sends included
  const PartOfRank& of(StepPart part) const { return parts[static_cast<std::size_t>(part)]; }
  bool is_known(StepPart part) const { return (part == StepPart::checkpoint ? saves : steps) > 0; }
};

// Between two ranks, in both directions.
struct LinkFigures {
  int rank = 0;
  int peer = 0;            // the higher one
  int kind = 0;            // which coordinates of their places differ: such links carry alike messages
  double messages = 0;     // in a step, on average: not every pair has something to say in each
  std::int64_t bytes = 0;  // of all steps
  // Of one message:
  std::int64_t sending = 0;    // in the longer of the two directions
  std::int64_t under_way = 0;  // in the shorter one: clocks of two nodes may differ
  std::int64_t time() const { return std::max(sending, under_way); }
};

struct GroupFigures {
  std::string name;
  std::int64_t time = 0;        // in its calls, of the rank that spent least: that one came last and waited for nobody
  std::int64_t calls = 0;       // in a step, of the rank that makes most
  std::int64_t bytes = 0;       // sent in a step, by the rank that sends most
  std::int64_t reductions = 0;  // of the calls
  std::int64_t reduced_bytes = 0;  // of the bytes
};

struct Figures {
  Plan plan;                // with the layout that the figures are of
  int steps = 0;            // that they are of
  bool ends_early = false;  // the history was cut off, or the run killed; the last step of its last attempt is left out
  std::vector<RankFigures> ranks;
  std::vector<LinkFigures> links;
  std::vector<GroupFigures> groups;  // of training
  std::int64_t step = 0;             // the longest of the ranks'
  std::int64_t checkpoint = 0;       // a save as training waited for it; 0: it waited for none
  double idle_in_pipeline = 0;       // share of a stage's time between its first forward and last backward; the least
};

Figures figures_of(const History& history, const Plan& plan);

inline constexpr std::size_t few = 12;

// The lower quartile, nearest rank; of few samples the least. Of nothing: 0.
std::int64_t typical_of(std::vector<std::int64_t> samples);
// The middle one; of an even number the lower. Of nothing: 0.
std::int64_t median_of(std::vector<std::int64_t> samples);

}  // namespace firedrill
