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

// Layers are dealt to stages in order, as evenly as whole layers allow.
struct LayerRun {
  int begin = 0;
  int end = 0;
  int count() const { return end - begin; }
};
LayerRun layers_of_stage(int layers, int stages, int stage);

// Micro-batches of a step that one rank computes: its dp lanes times the accumulation.
int micro_batches_per_rank(const Layout& layout, const Job& job);

// The share of a step in which a stage of a balanced pipeline has nothing to do: (p-1)/(m+p-1) for p stages and m
// micro-batches; interleaved with v runs of layers a rank (p-1)/(v*m+p-1). 0 with one stage.
double bubble_fraction(const Layout& layout, const Job& job);

// What rank `index` of the pipeline does for `units` micro-batches.
std::vector<PipelineAction> pipeline_actions(const Layout& layout, int index, int units);

}  // namespace firedrill
