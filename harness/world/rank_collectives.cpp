#include "harness/world/rank_collectives.h"

#include <fmt/format.h>

#include <array>

#ifdef FIREDRILL_CUDA
#include "engine/comm/cuda/nccl_communicator.h"
#endif

namespace firedrill {
namespace {

struct GroupKind {
  Group Groups::*group;
  bool point_to_point = false;
};

constexpr std::array kinds = {
    GroupKind{&Groups::world},
    GroupKind{&Groups::publish},
    GroupKind{&Groups::dp},
    GroupKind{&Groups::tp},
    GroupKind{&Groups::cp},
    GroupKind{.group = &Groups::pp, .point_to_point = true},
    GroupKind{.group = &Groups::pp_backward, .point_to_point = true},
    GroupKind{&Groups::model},
    GroupKind{&Groups::ep},
    GroupKind{&Groups::expert_cp},
    GroupKind{&Groups::expert_dp},
    GroupKind{&Groups::tied},
};

Group of_one(const Group& empty, int rank) {
  return {.id = empty.id, .name = empty.name, .ranks = {rank}, .lanes = {{.begin = 0, .end = 1}}, .me = 0};
}

}  // namespace

Result<Wire> wire_of(const Job& job, int ranks, int gpus) {
  if (job.device == Device::cpu) return Wire::tcp;
  if (gpus >= ranks) return Wire::nccl;
  if (job.collectives == Reduction::native) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("collectives is native, and there are {} GPUs for {} ranks: NCCL wants one for "
                                        "each",
                                        gpus, ranks),
                 .hint = "give a layout of fewer ranks, or collectives: tree, which runs over TCP"};
  }
  return Wire::tcp;
}

Status sums_are_offered(const Plan& plan, int gpus) {
  if (plan.job.collectives != Reduction::native) return {};
  const auto refused = [](std::string why) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("collectives is native, and {}", why),
                 .hint = "give collectives: tree, which has the same bits everywhere"};
  };
  if (plan.world == WorldKind::sim) return refused("the sim world has no NCCL: world: process does");
  if (plan.layout.zero > 0) {
    return refused(fmt::format("the layout has zero: {}: a golden of NCCL's sums is known for whole states only",
                               plan.layout.zero));
  }
  if (plan.recovery.layout) return refused("recovery goes on in another layout, in which NCCL's sums have other bits");
  const Result<Wire> wire = wire_of(plan.job, plan.layout.world_size(), gpus);
  return wire ? Status() : Status(wire.error());
}

std::vector<NcclGroup> nccl_groups(const Job& job, const Layout& layout, int rank) {
  const Groups mine = groups_of(job, layout, rank);
  // Groups of a kind are alike on all ranks, but for the tied weight's, of which the first rank has one if any has.
  const Groups of_first = groups_of(job, layout, 0);
  std::vector<NcclGroup> groups;
  for (const GroupKind& kind : kinds) {
    if ((of_first.*kind.group).size() <= 1) continue;
    const Group& group = mine.*kind.group;
    groups.push_back({.group = group.size() > 0 ? group : of_one(group, rank), .point_to_point = kind.point_to_point});
  }
  return groups;
}

std::vector<NcclGroup> nccl_publish_group(const Job& job, const Layout& layout, int rank) {
  const Groups mine = groups_of(job, layout, rank);
  if (mine.publish.size() <= 1) return {};
  return {{.group = mine.publish}};
}

#ifdef FIREDRILL_CUDA
Result<std::unique_ptr<Communicator>> nccl_world(Store& store, Clock& clock, const NcclTask& task, Time deadline) {
  return NcclCommunicator::of_world(
      store, task.key, clock, {.rank = task.rank, .world_size = task.world_size, .device = task.device}, deadline);
}
#else
Result<std::unique_ptr<Communicator>> nccl_world(Store&, Clock&, const NcclTask& task, Time) {
  return Error{.code = Code::unavailable,
               .message = fmt::format("rank {} was to use NCCL, and this firedrill was built without it", task.rank),
               .hint = "build the preset cuda"};
}
#endif

}  // namespace firedrill
