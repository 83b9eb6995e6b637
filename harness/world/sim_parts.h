// Small parts of the sim world: what the dead say, and who else is there.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/job/layout.h"
#include "engine/seam/host.h"
#include "engine/seam/observer.h"

namespace firedrill {

// Drops what a dead rank would say.
class LivingObserver final : public ForwardingObserver {
 public:
  LivingObserver(Observer& inner, const Host& host) : ForwardingObserver(inner), host_(host) {}
  void event(const Event& event) override {
    if (!host_.dead()) inner_.event(event);
  }

 private:
  const Host& host_;
};

// See Effects::others_in.
inline std::vector<int> others_in(std::string_view group, const Job& job, const Layout& layout, int rank) {
  const Groups groups = groups_of(job, layout, rank);
  std::vector<int> ranks = groups.world.ranks;
  for (const Group* one : {&groups.dp, &groups.tp, &groups.cp, &groups.pp, &groups.model, &groups.ep, &groups.expert_cp,
                           &groups.expert_dp}) {
    if (one->name == group) ranks = one->ranks;
  }
  std::erase_if(ranks, [&](int other) {
    return other == rank || (group == "node" && node_of(job, other) == node_of(job, rank));
  });
  return ranks;
}

// Who asks the memo: ranks of layouts in which kernels follow each other otherwise are apart.
inline std::size_t memo_caller(const Layout& layout, int rank, bool aside) {
  std::size_t caller = 0;
  for (const int part : {rank, static_cast<int>(aside), layout.dp, layout.tp, layout.zero,
                         static_cast<int>(layout.rerun), static_cast<int>(layout.prefetch)}) {
    caller = caller * 31 + static_cast<std::size_t>(part);
  }
  return caller;
}

inline std::vector<int> ranks_of_node(const Job& job, int rank, int world_size) {
  std::vector<int> ranks;
  for (int other = 0; other < world_size; ++other) {
    if (node_of(job, other) == node_of(job, rank)) ranks.push_back(other);
  }
  return ranks;
}

}  // namespace firedrill
