// Placement: which groups of a layout stay inside a node and which cross nodes, and what that and the pipeline mean for
// its speed. Pure functions.
//
// Ranks lie on nodes in a row, cluster.ranks_per_node to a node, and are numbered tp innermost, then cp and ep, then
// dp, then pp (layout.h). tp exchanges activations in every layer, cp keys and values, ep tokens; dp exchanges
// gradients once a step, pp one activation between two stages: so what talks most lies closest together, on the fastest
// links.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "engine/job/layout.h"

namespace firedrill {

struct GroupPlacement {
  std::string group;  // "tp"; see groups_of
  int size = 1;       // ranks
  int nodes = 1;      // the most that one such group lies on
  // The slowest link that it needs.
  std::chrono::nanoseconds latency{0};
  double bandwidth = 0;  // bytes per second

  bool crosses() const { return nodes > 1; }
};

// Of the groups with more than one rank, in the order tp, cp, ep, dp, pp, expert.cp, expert.dp, tied, world.
std::vector<GroupPlacement> placement_of(const Job& job, const Layout& layout);

// "tp: 8 ranks, inside a node (100GB/s)".
std::string to_string(const GroupPlacement& placement);

// What works and yet costs time: a tp group that leaves a node, fewer micro-batches than pipeline stages; and what
// does nothing. In words, with the numbers.
std::vector<std::string> warnings_of(const Job& job, const Layout& layout);

}  // namespace firedrill
