#include "harness/world/sim_costs.h"

namespace firedrill {

sim::CostTable costs_of(const Cluster& cluster) {
  sim::CostTable costs;
  costs.latency_in_node = cluster.latency_in_node;
  costs.latency_between_nodes = cluster.latency_between_nodes;
  costs.bandwidth_in_node = static_cast<std::uint64_t>(cluster.bandwidth_in_node);
  costs.bandwidth_between_nodes = static_cast<std::uint64_t>(cluster.bandwidth_between_nodes);
  costs.file_operation = cluster.file_operation;
  costs.file_sync = cluster.file_sync;
  costs.file_bandwidth = static_cast<std::uint64_t>(cluster.file_bandwidth);
  costs.kernel = {cluster.forward, cluster.backward, cluster.optimizer, cluster.reduce, cluster.codec, Duration{0}};
  const auto work = [&costs](WorkKind kind, const SegmentTime& time) {
    costs.work_forward[static_cast<std::size_t>(kind)] = time.forward;
    costs.work_backward[static_cast<std::size_t>(kind)] = time.backward;
  };
  work(WorkKind::embed, cluster.embed);
  work(WorkKind::attention, cluster.attention);
  work(WorkKind::mlp, cluster.mlp);
  work(WorkKind::head, cluster.head);
  work(WorkKind::expert, cluster.expert);
  costs.send = cluster.message;
  costs.failure_detection = cluster.failure_detection;
  return costs;
}

}  // namespace firedrill
