// Pipeline: in which order one rank runs the forwards and backwards of its stages. A pure function of the layout, so
// every rank knows what its neighbours do, and sends and receives match in order.
//
// GPipe: Huang et al., NeurIPS 2019. One forward, one backward, and its interleaved form: Narayanan et al., "Efficient
// large-scale language model training on GPU clusters using Megatron-LM" (SC'21). In all of them the backwards of one
// stage run in the order of the units, so that accumulators add up in one order.
#pragma once

#include <vector>

#include "engine/job/layout.h"

namespace firedrill {

struct PipelineAction {
  bool backward = false;
  int stage = 0;  // which of the rank's own stages
  int unit = 0;
  bool operator==(const PipelineAction&) const = default;
};

// What rank `index` of the pipeline does for `units` micro-batches.
std::vector<PipelineAction> pipeline_actions(const Layout& layout, int index, int units);

}  // namespace firedrill
