// Layout: how the lanes of a job lie on ranks. Never changes bits. world = dp * tp * pp * cp; degrees divide lanes.
//
// Ranks are numbered so that tp is innermost, then cp, then dp, then pp: rank = ((pp * DP + dp) * CP + cp) * TP + tp.
#pragma once

#include <string>
#include <vector>

#include "engine/job/job.h"
#include "engine/seam/collectives.h"

namespace firedrill {

struct Layout {
  int dp = 1;
  int tp = 1;
  int pp = 1;
  int cp = 1;
  int ep = 1;
  int zero = 0;

  int world_size() const { return dp * tp * pp * cp; }
  bool operator==(const Layout&) const = default;
};

std::string to_string(const Layout& layout);  // "dp=4" (degrees of 1 left out; "dp=1" if all are)

// Every reason why the layout does not fit the job, with the numbers and the nearest degree that does.
std::vector<std::string> mistakes_in(const Layout& layout, const Job& job);

// The groups a rank is in. Built here and nowhere else.
struct Groups {
  Group world;    // all ranks; one lane each
  Group publish;  // the same for the second task, so that its messages never meet those of training
  Group dp;       // the ranks among which the dp lanes lie; lanes as owned
};

Groups groups_of(const Job& job, const Layout& layout, int rank);

// The dp lanes a rank owns.
LaneRange dp_lanes_of(const Job& job, const Layout& layout, int rank);

// The node of a rank: cluster.ranks_per_node ranks in a row share one.
int node_of(const Job& job, int rank);

}  // namespace firedrill
