// Layout: how the lanes, layers and experts of a job lie on ranks. Never changes bits. world = dp * tp * pp * cp;
// degrees divide lanes, layers lie on pipeline stages in runs.
//
// Ranks are numbered so that tp is innermost, then cp, then dp, then pp: rank = ((pp * DP + dp) * CP + cp) * TP + tp.
// What most often talks lies closest together, so it stays inside a node.
//
// Experts: ep ranks in a row of the (dp, cp) grid, cp fastest, with the same tp and pp place, are an ep group. Each
// holds experts / ep of every layer's experts, in order, and works for the tokens of all of the group's (dp, cp) lanes.
// ep divides dp * cp, and is a divisor or a multiple of cp, so that what one rank works for is whole runs of cp lanes
// of whole runs of dp lanes: the sums over lanes are then the same two trees as those of everything else.
#pragma once

#include <string>
#include <vector>

#include "engine/job/job.h"
#include "engine/seam/collectives.h"

namespace firedrill {

// In which order a pipeline stage runs the forwards and backwards of its units.
enum class PipelineSchedule : std::uint8_t {
  gpipe,        // all forwards, then all backwards
  one_f_one_b,  // forwards to fill the pipeline, then one of each in turn
  interleaved,  // as one_f_one_b, each rank with several runs of layers (virtual_stages)
};

// What a stage keeps of a forward for its backward.
enum class Recompute : std::uint8_t {
  segment,  // the input of attention and of MLP
  layer,    // the input of the layer; attention runs once more
};

// What is looked at before data moves in a collective.
enum class Guard : std::uint8_t {
  off,
  record,  // each rank keeps the last calls and gives them when the attempt fails
  check,   // and the members compare the call's fingerprint first, and payloads by the sender's digest
};

struct Layout {
  int dp = 1;
  int tp = 1;
  int pp = 1;
  int cp = 1;
  int ep = 1;
  int zero = 0;
  // Norm, dropout and residual of a chunk of the sequence run on one tp rank only, instead of on all.
  bool sequence_parallel = false;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int virtual_stages = 1;  // runs of layers on one rank
  Recompute recompute = Recompute::segment;
  bool prefetch = false;          // with zero 3: gather a piece's parameters before the piece in front of it runs
  std::int64_t bucket_bytes = 0;  // gradients are exchanged in runs of at least so many bytes; 0: all at once

  Guard guard = Guard::off;
  int replica_check = 0;  // steps between two comparisons of what replicas hold, and before each snapshot; 0: never
  bool rerun = false;     // every kernel of a step is computed twice and compared before its result is kept

  int world_size() const { return dp * tp * pp * cp; }
  bool operator==(const Layout&) const = default;
};

std::string_view to_string(PipelineSchedule schedule);  // "gpipe", "1f1b", "interleaved"
std::string_view to_string(Guard guard);
std::string to_string(const Layout& layout);  // "dp=4" (degrees of 1 left out; "dp=1" if all are)

// Every reason why the layout does not fit the job, with the numbers and the nearest degree that does.
std::vector<std::string> mistakes_in(const Layout& layout, const Job& job);

// Where a rank stands in the layout, and which lanes it owns.
struct RankPlace {
  int dp = 0;
  int tp = 0;
  int pp = 0;
  int cp = 0;
  LaneRange dp_lanes;
  LaneRange tp_lanes;
  LaneRange cp_lanes;
  // The (cp, tp) chunks of the sequence whose norm, dropout and residual this rank computes, for each of its cp lanes:
  // all, or with sequence parallelism those of its tp lanes.
  LaneRange chunks;
  // Which experts of each layer this rank holds, and whose tokens they work for: the lanes of its ep group.
  int ep = 0;
  LaneRange experts;
  LaneRange expert_dp_lanes;
  LaneRange expert_cp_lanes;
};

// The shape of an ep group in the grid of dp and cp ranks. dp * cp = ep.
struct ExpertBlock {
  int dp = 1;
  int cp = 1;
};
ExpertBlock expert_block(const Layout& layout);

RankPlace place_of(const Job& job, const Layout& layout, int rank);

// The groups a rank is in. Built here and nowhere else.
struct Groups {
  Group world;    // all ranks; one lane each
  Group publish;  // the same for the second task, so that its messages never meet those of training
  Group dp;       // the ranks among which the dp lanes lie; lanes as owned
  Group tp;
  Group cp;
  Group pp;           // the stages of one pipeline, first to last; one lane each: activations, forwards
  Group pp_backward;  // the same for gradients, so that the two never meet
  Group model;        // the ranks that hold one whole model together: all of one ep group; one lane each
  Group ep;           // the ranks among which one place's experts lie; one lane each
  // Those that hold the same experts: over which cp lanes' and then dp lanes' gradients of an expert are added.
  Group expert_cp;
  Group expert_dp;
  Group tied;  // the first and the last stage of one pipeline; elsewhere empty
};

Groups groups_of(const Job& job, const Layout& layout, int rank);

// The dp lanes a rank owns.
LaneRange dp_lanes_of(const Job& job, const Layout& layout, int rank);

// The node of a rank: cluster.ranks_per_node ranks in a row share one.
int node_of(const Job& job, int rank);

}  // namespace firedrill
