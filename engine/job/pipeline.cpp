#include "engine/job/pipeline.h"

#include <algorithm>

#include "engine/base/check.h"

namespace firedrill {
namespace {

// The n-th forward of a rank. Units go through in groups of as many as the pipeline has ranks, each group through all
// of the rank's stages; backwards meet the stages from the last to the first.
PipelineAction nth(const Layout& layout, int n, bool backward) {
  const int group = layout.pp * layout.virtual_stages;
  const int stage = n % group / layout.pp;
  return {.backward = backward,
          .stage = backward ? layout.virtual_stages - 1 - stage : stage,
          .unit = n / group * layout.pp + n % layout.pp};
}

}  // namespace

std::vector<PipelineAction> pipeline_actions(const Layout& layout, int index, int units) {
  const bool interleaved = layout.schedule == PipelineSchedule::interleaved;
  FD_CHECK(!interleaved || units % layout.pp == 0, "{} units for {} interleaved ranks", units, layout.pp);
  const int all = units * layout.virtual_stages;
  int ahead = 0;  // forwards before the first backward
  if (layout.schedule == PipelineSchedule::gpipe) {
    ahead = all;
  } else if (interleaved) {
    ahead = 2 * (layout.pp - 1 - index) + (layout.virtual_stages - 1) * layout.pp;
  } else {
    ahead = layout.pp - 1 - index;
  }
  ahead = std::min(ahead, all);
  const auto action = [&](int n, bool backward) {
    if (interleaved) return nth(layout, n, backward);
    return PipelineAction{.backward = backward, .stage = 0, .unit = n};
  };
  std::vector<PipelineAction> actions;
  for (int n = 0; n < ahead; ++n) actions.push_back(action(n, false));
  for (int n = 0; n + ahead < all; ++n) {
    actions.push_back(action(n + ahead, false));
    actions.push_back(action(n, true));
  }
  for (int n = all - ahead; n < all; ++n) actions.push_back(action(n, true));
  return actions;
}

LayerRun layers_of_stage(int layers, int stages, int stage) {
  const auto cut = [&](int i) { return static_cast<int>(static_cast<std::int64_t>(layers) * i / stages); };
  return {.begin = cut(stage), .end = cut(stage + 1)};
}

int micro_batches_per_rank(const Layout& layout, const Job& job) {
  return job.lanes.dp / layout.dp * job.batch.accumulation;
}

double bubble_fraction(const Layout& layout, const Job& job) {
  const double idle = layout.pp - 1;
  return idle / (static_cast<double>(micro_batches_per_rank(layout, job)) * layout.virtual_stages + idle);
}

}  // namespace firedrill
