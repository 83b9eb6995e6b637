#include "engine/job/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/base/units.h"
#include "engine/job/pipeline.h"

namespace firedrill {
namespace {

// A group of `size` ranks that lie `stride` apart.
struct Spread {
  std::string_view group;
  int size = 1;
  int stride = 1;
};

// The most nodes that one group of the kind lies on. Node boundaries repeat, so few groups need to be looked at.
int nodes_of(const Job& job, const Spread& spread, int world) {
  const int per_node = job.cluster.ranks_per_node;
  int most = 1;
  const int block = spread.stride * spread.size;
  for (int first = 0; first < world; first += block) {
    for (int offset = 0; offset < spread.stride; ++offset) {
      if (first + offset + (spread.size - 1) * spread.stride >= world) break;  // ranks between two ends
      int nodes = 0;
      int last = -1;
      for (int i = 0; i < spread.size; ++i) {
        const int node = (first + offset + i * spread.stride) / per_node;
        if (node != last) ++nodes;
        last = node;
      }
      most = std::max(most, nodes);
    }
  }
  return most;
}

}  // namespace

std::vector<GroupPlacement> placement_of(const Job& job, const Layout& layout) {
  const int inner = layout.tp * layout.cp;
  const ExpertBlock block = expert_block(layout);
  // With ep of 1 those that hold the same experts are the cp and dp groups.
  const bool experts = layout.ep > 1;
  const bool tied = job.model.tied_embedding && layout.pp > 1;
  const Spread all[] = {{"tp", layout.tp, 1},
                        {"cp", layout.cp, layout.tp},
                        {"ep", layout.ep, layout.tp},
                        {"dp", layout.dp, inner},
                        {"pp", layout.pp, inner * layout.dp},
                        {"expert.cp", experts ? layout.cp / block.cp : 1, layout.tp * block.cp},
                        {"expert.dp", experts ? layout.dp / block.dp : 1, inner * block.dp},
                        {"tied", tied ? 2 : 1, inner * layout.dp * (layout.pp - 1)},
                        {"world", layout.world_size(), 1}};
  std::vector<GroupPlacement> placements;
  for (const Spread& spread : all) {
    if (spread.size < 2) continue;
    GroupPlacement placement{.group = std::string(spread.group), .size = spread.size};
    placement.nodes = nodes_of(job, spread, layout.world_size());
    const Cluster& cluster = job.cluster;
    placement.latency = placement.crosses() ? cluster.latency_between_nodes : cluster.latency_in_node;
    placement.bandwidth = placement.crosses() ? cluster.bandwidth_between_nodes : cluster.bandwidth_in_node;
    placements.push_back(std::move(placement));
  }
  return placements;
}

std::string to_string(const GroupPlacement& placement) {
  return fmt::format("{}: {} ranks, {} ({})", placement.group, placement.size,
                     placement.crosses() ? fmt::format("across {} nodes", placement.nodes) : "inside a node",
                     format_bandwidth(placement.bandwidth));
}

std::vector<std::string> warnings_of(const Job& job, const Layout& layout) {
  std::vector<std::string> warnings;
  for (const GroupPlacement& placement : placement_of(job, layout)) {
    if (placement.group != "tp" || !placement.crosses()) continue;
    warnings.push_back(fmt::format(
        "layout.tp is {} with {} ranks to a node: the tp groups leave their node, and every layer's "
        "exchanges take the link between nodes ({} instead of {}); inside a node are at most tp {}",
        layout.tp, job.cluster.ranks_per_node, format_bandwidth(job.cluster.bandwidth_between_nodes),
        format_bandwidth(job.cluster.bandwidth_in_node), std::gcd(job.lanes.tp, job.cluster.ranks_per_node)));
  }
  if (layout.prefetch && layout.zero != 3) {
    warnings.push_back(fmt::format(
        "layout.prefetch is on and layout.zero is {}: parameters are gathered with zero 3 only, so it does nothing",
        layout.zero));
  }
  const int units = micro_batches_per_rank(layout, job);
  if (units < layout.pp) {
    warnings.push_back(fmt::format(
        "layout.pp is {} and a rank has {} micro-batches a step (accumulation {} x {} dp lanes): fewer than stages; "
        "{:.0f} % of the step are a bubble",
        layout.pp, units, job.batch.accumulation, job.lanes.dp / layout.dp, 100 * bubble_fraction(layout, job)));
  }
  return warnings;
}

}  // namespace firedrill
