#include "engine/job/layout.h"

#include <fmt/format.h>

#include "engine/base/text.h"

namespace firedrill {
namespace {

// The divisor of `lanes` nearest to `degree`; the smaller one of two.
int nearest_divisor(int lanes, int degree) {
  int best = 1;
  for (int candidate = 1; candidate <= lanes; ++candidate) {
    if (lanes % candidate == 0 && std::abs(candidate - degree) < std::abs(best - degree)) best = candidate;
  }
  return best;
}

}  // namespace

std::string to_string(const Layout& layout) {
  std::vector<std::string> parts;
  const auto add = [&parts](std::string_view name, int degree, int neutral) {
    if (degree != neutral) parts.push_back(fmt::format("{}={}", name, degree));
  };
  add("dp", layout.dp, 1);
  add("tp", layout.tp, 1);
  add("pp", layout.pp, 1);
  add("cp", layout.cp, 1);
  add("ep", layout.ep, 1);
  add("zero", layout.zero, 0);
  return parts.empty() ? "dp=1" : join(parts, ",");
}

std::vector<std::string> mistakes_in(const Layout& layout, const Job& job) {
  std::vector<std::string> mistakes;
  if (layout.dp < 1) {
    mistakes.push_back(fmt::format("layout.dp is {}: give 1 or more", layout.dp));
  } else if (job.lanes.dp >= 1 && job.lanes.dp % layout.dp != 0) {
    mistakes.push_back(
        fmt::format("layout.dp is {} and does not divide the job's {} dp lanes: the nearest that does is {}", layout.dp,
                    job.lanes.dp, nearest_divisor(job.lanes.dp, layout.dp)));
  }
  const auto only = [&mistakes](std::string_view name, int degree, int supported) {
    if (degree != supported)
      mistakes.push_back(fmt::format("layout.{} is {}: only {} is supported yet", name, degree, supported));
  };
  only("tp", layout.tp, 1);
  only("pp", layout.pp, 1);
  only("cp", layout.cp, 1);
  only("ep", layout.ep, 1);
  only("zero", layout.zero, 0);
  return mistakes;
}

LaneRange dp_lanes_of(const Job& job, const Layout& layout, int rank) {
  const int index = rank / (layout.cp * layout.tp) % layout.dp;
  const int each = job.lanes.dp / layout.dp;
  return LaneRange{.begin = index * each, .end = (index + 1) * each};
}

Groups groups_of(const Job& job, const Layout& layout, int rank) {
  Groups groups;
  groups.world.id = 1;
  groups.world.name = "world";
  groups.world.me = rank;
  for (int r = 0; r < layout.world_size(); ++r) {
    groups.world.ranks.push_back(r);
    groups.world.lanes.push_back({.begin = r, .end = r + 1});
  }
  groups.publish = groups.world;
  groups.publish.id = 3;
  groups.publish.name = "publish";
  groups.dp.id = 2;
  groups.dp.name = "dp";
  const int inner = layout.cp * layout.tp;
  for (int index = 0; index < layout.dp; ++index) {
    const int peer = rank - (rank / inner % layout.dp - index) * inner;
    if (peer == rank) groups.dp.me = index;
    groups.dp.ranks.push_back(peer);
    groups.dp.lanes.push_back(dp_lanes_of(job, layout, peer));
  }
  return groups;
}

int node_of(const Job& job, int rank) { return rank / job.cluster.ranks_per_node; }

}  // namespace firedrill
