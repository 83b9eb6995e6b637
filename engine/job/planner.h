// Planner: which layouts of a job there are, which of them fit in a GPU's memory, and in what order to try them. Pure
// functions.
//
// A step's time is estimated from the job's cluster table: kernels of the rank's segments and lanes one behind the
// other, stretched by the pipeline's bubble, then the exchanges of each group over the slowest link that it needs, with
// the bytes of a ring (2(n-1)/n of what is added up, (n-1)/n of what is gathered) and nothing overlapped. It is there
// to compare layouts, not to foretell a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/job/memory.h"
#include "engine/job/placement.h"

namespace firedrill {

// Legal layouts with the fewest changes of degrees from `layout`, nearest first, at most `count`. Everything but the
// degrees is as in `layout`, or plain where that is not legal.
std::vector<Layout> nearest_layouts(const Job& job, const Layout& layout, std::size_t count = 3);

// mistakes_in, the last one followed by the nearest layouts that are legal.
std::vector<std::string> mistakes_and_remedies(const Layout& layout, const Job& job);

struct GroupExchange {
  GroupPlacement placement;
  double bytes = 0;  // that a rank sends in a step
  double seconds = 0;
};

struct StepEstimate {
  double compute = 0;  // seconds
  double bubble = 0;   // fraction of the pipeline's time
  std::vector<GroupExchange> exchanges;

  double exchange() const;
  double seconds() const { return compute / (1 - bubble) + exchange(); }
};

StepEstimate estimate_step(const Job& job, const Layout& layout);

struct LayoutChoice {
  Layout layout;
  std::int64_t needed = 0;  // bytes, of the worst rank, reserve included
  StepEstimate step;
  std::string reason;  // in words
};

struct SearchOptions {
  MemoryOptions memory;
  std::optional<int> ranks = {};  // else the smallest world in which a layout fits
  std::size_t count = 10;
};

// Layouts that fit, the quickest by the estimate first.
std::vector<LayoutChoice> layouts_that_fit(const Job& job, const SearchOptions& options);

// `ranks` if a legal layout has so many; else the world sizes of legal layouts below and above it.
std::vector<int> world_sizes_near(const Job& job, int ranks);

}  // namespace firedrill
