#include "engine/job/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/job/without_checks.h"

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

LaneRange share(int lanes, int degree, int index) {
  const int each = lanes / degree;
  return LaneRange{.begin = index * each, .end = (index + 1) * each};
}

// Whether ep groups are whole runs of the grid (layout.h), and the experts divide.
bool is_expert_degree(int ep, const Layout& layout, int experts) {
  const int grid = layout.dp * layout.cp;
  return grid % ep == 0 && experts % ep == 0 && (layout.cp % ep == 0 || ep % layout.cp == 0);
}

void check_experts(const Layout& layout, const Job& job, std::vector<std::string>& mistakes) {
  const int experts = job.model.experts;
  const int ep = layout.ep;
  if (ep < 1) {
    mistakes.push_back(fmt::format("layout.ep is {}: give 1 or more", ep));
    return;
  }
  if (experts < 1) {
    if (ep > 1) mistakes.push_back(fmt::format("layout.ep is {} and the job has no experts: only 1 fits", ep));
    return;
  }
  if (layout.dp < 1 || layout.cp < 1 || is_expert_degree(ep, layout, experts)) return;
  int nearest = 1;
  for (int candidate = 1; candidate <= layout.dp * layout.cp; ++candidate) {
    if (is_expert_degree(candidate, layout, experts) && std::abs(candidate - ep) < std::abs(nearest - ep)) {
      nearest = candidate;
    }
  }
  std::string reason = fmt::format("is neither a divisor nor a multiple of cp, {}", layout.cp);
  if (experts % ep != 0) {
    reason = fmt::format("does not divide the job's {} experts", experts);
  } else if (layout.dp * layout.cp % ep != 0) {
    reason = fmt::format("does not divide dp x cp = {} x {} = {}", layout.dp, layout.cp, layout.dp * layout.cp);
  }
  mistakes.push_back(fmt::format("layout.ep is {} and {}: the nearest that fits is {}", ep, reason, nearest));
}

int rank_at(const Layout& layout, const RankPlace& place) {
  return ((place.pp * layout.dp + place.dp) * layout.cp + place.cp) * layout.tp + place.tp;
}

// The ranks that differ from `place` in one of its indices, which `set(place, i)` puts to each i in [0, degree).
template <class SetIndex, class LanesOf>
Group group_along(const Job& job, const Layout& layout, const RankPlace& place, std::uint32_t id, std::string name,
                  int degree, SetIndex set, LanesOf lanes_of) {
  Group group{.id = id, .name = std::move(name), .ranks = {}, .lanes = {}};
  const int own = rank_at(layout, place);
  for (int i = 0; i < degree; ++i) {
    RankPlace other = place;
    set(other, i);
    const int rank = rank_at(layout, other);
    if (rank == own) group.me = i;
    group.ranks.push_back(rank);
    group.lanes.push_back(lanes_of(place_of(job, layout, rank), i));
  }
  return group;
}

void check_pipeline(const Layout& layout, const Job& job, std::vector<std::string>& mistakes) {
  if (layout.pp < 1) {
    mistakes.push_back(fmt::format("layout.pp is {}: give 1 or more", layout.pp));
    return;
  }
  const bool interleaved = layout.schedule == PipelineSchedule::interleaved;
  if (layout.virtual_stages < 1 || (layout.virtual_stages > 1) != interleaved) {
    mistakes.push_back(
        fmt::format("layout.virtual_stages is {} with schedule {}: give 2 or more with schedule interleaved, else 1",
                    layout.virtual_stages, to_string(layout.schedule)));
    return;
  }
  if (layout.pp * layout.virtual_stages > job.model.layers) {
    mistakes.push_back(
        fmt::format("layout.pp is {} with virtual_stages {}: {} stages for {} layers, of which each stage "
                    "needs one; the most that fit are {}",
                    layout.pp, layout.virtual_stages, layout.pp * layout.virtual_stages, job.model.layers,
                    job.model.layers / layout.virtual_stages));
  }
  if (layout.dp < 1 || job.lanes.dp % layout.dp != 0) return;
  const int units = job.lanes.dp / layout.dp * job.batch.accumulation;
  if (interleaved && (layout.pp < 2 || units % layout.pp != 0)) {
    mistakes.push_back(fmt::format(
        "layout.schedule is interleaved: it needs pp of 2 or more (here {}) and micro-batches "
        "per rank that pp divides, and {} x {} = {} are not; the nearest pp is {}",
        layout.pp, job.lanes.dp / layout.dp, job.batch.accumulation, units, nearest_divisor(units, layout.pp)));
  }
}

}  // namespace

std::string_view to_string(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::gpipe: return "gpipe";
    case PipelineSchedule::one_f_one_b: return "1f1b";
    case PipelineSchedule::interleaved: return "interleaved";
  }
  return "?";
}

std::string_view to_string(Guard guard) {
  switch (guard) {
    case Guard::off: return "off";
    case Guard::record: return "record";
    case Guard::check: return "check";
  }
  return "?";
}

Layout without_checks(Layout layout) {
  const Layout plain;
  layout.guard = plain.guard;
  layout.replica_check = plain.replica_check;
  layout.rerun = plain.rerun;
  return layout;
}

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
  if (layout.sequence_parallel) parts.emplace_back("sequence_parallel");
  if (layout.schedule != PipelineSchedule::one_f_one_b)
    parts.push_back(fmt::format("schedule={}", to_string(layout.schedule)));
  add("virtual_stages", layout.virtual_stages, 1);
  if (layout.recompute == Recompute::layer) parts.push_back("recompute=layer");
  if (layout.prefetch) parts.push_back("prefetch");
  if (layout.bucket_bytes != 0) parts.push_back(fmt::format("bucket={}", layout.bucket_bytes));
  if (layout.guard != Guard::off) parts.push_back(fmt::format("guard={}", to_string(layout.guard)));
  add("replica_check", layout.replica_check, 0);
  if (layout.rerun) parts.push_back("rerun");
  return parts.empty() ? "dp=1" : join(parts, ",");
}

std::vector<std::string> mistakes_in(const Layout& layout, const Job& job) {
  std::vector<std::string> mistakes;
  const auto divides = [&mistakes](std::string_view name, int degree, int lanes) {
    if (degree < 1) {
      mistakes.push_back(fmt::format("layout.{} is {}: give 1 or more", name, degree));
    } else if (lanes >= 1 && lanes % degree != 0) {
      mistakes.push_back(
          fmt::format("layout.{0} is {1} and does not divide the job's {2} {0} lanes: the nearest that does is {3}",
                      name, degree, lanes, nearest_divisor(lanes, degree)));
    }
  };
  divides("dp", layout.dp, job.lanes.dp);
  divides("tp", layout.tp, job.lanes.tp);
  divides("cp", layout.cp, job.lanes.cp);
  check_experts(layout, job, mistakes);
  if (layout.zero < 0 || layout.zero > 3) {
    mistakes.push_back(fmt::format("layout.zero is {}: give 0 to 3", layout.zero));
  }
  if (layout.bucket_bytes < 0) {
    mistakes.push_back(fmt::format("layout.bucket is {}: give 0 (one exchange) or more bytes", layout.bucket_bytes));
  }
  if (layout.replica_check < 0) {
    mistakes.push_back(fmt::format("layout.replica_check is {}: give the number of steps between two comparisons, or 0",
                                   layout.replica_check));
  }
  check_pipeline(layout, job, mistakes);
  return mistakes;
}

RankPlace place_of(const Job& job, const Layout& layout, int rank) {
  RankPlace place;
  place.tp = rank % layout.tp;
  place.cp = rank / layout.tp % layout.cp;
  place.dp = rank / (layout.tp * layout.cp) % layout.dp;
  place.pp = rank / (layout.tp * layout.cp * layout.dp);
  place.dp_lanes = share(job.lanes.dp, layout.dp, place.dp);
  place.tp_lanes = share(job.lanes.tp, layout.tp, place.tp);
  place.cp_lanes = share(job.lanes.cp, layout.cp, place.cp);
  place.chunks = layout.sequence_parallel ? place.tp_lanes : LaneRange{.begin = 0, .end = job.lanes.tp};
  const ExpertBlock block = expert_block(layout);
  place.ep = place.dp % block.dp * block.cp + place.cp % block.cp;
  place.experts = share(job.model.experts, layout.ep, place.ep);
  place.expert_dp_lanes = share(job.lanes.dp, layout.dp / block.dp, place.dp / block.dp);
  place.expert_cp_lanes = share(job.lanes.cp, layout.cp / block.cp, place.cp / block.cp);
  return place;
}

ExpertBlock expert_block(const Layout& layout) {
  const int cp = std::min(layout.ep, layout.cp);
  return {.dp = layout.ep / cp, .cp = cp};
}

LaneRange dp_lanes_of(const Job& job, const Layout& layout, int rank) { return place_of(job, layout, rank).dp_lanes; }

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
  const RankPlace place = place_of(job, layout, rank);
  const auto one_each = [](const RankPlace&, int i) { return LaneRange{.begin = i, .end = i + 1}; };
  groups.dp = group_along(
      job, layout, place, 2, "dp", layout.dp, [](RankPlace& other, int i) { other.dp = i; },
      [](const RankPlace& other, int) { return other.dp_lanes; });
  groups.tp = group_along(
      job, layout, place, 4, "tp", layout.tp, [](RankPlace& other, int i) { other.tp = i; },
      [](const RankPlace& other, int) { return other.tp_lanes; });
  groups.cp = group_along(
      job, layout, place, 5, "cp", layout.cp, [](RankPlace& other, int i) { other.cp = i; },
      [](const RankPlace& other, int) { return other.cp_lanes; });
  groups.pp = group_along(
      job, layout, place, 6, "pp", layout.pp, [](RankPlace& other, int i) { other.pp = i; }, one_each);
  groups.pp_backward = groups.pp;
  groups.pp_backward.id = 8;
  groups.pp_backward.name = "pp.backward";
  const ExpertBlock block = expert_block(layout);
  const auto in_block = [block](RankPlace& other, int i) {
    other.dp += i / block.cp - other.dp % block.dp;
    other.cp += i % block.cp - other.cp % block.cp;
  };
  groups.model = group_along(
      job, layout, place, 7, "model", layout.pp * layout.ep * layout.tp,
      [&](RankPlace& other, int i) {
        other.pp = i / (layout.ep * layout.tp);
        in_block(other, i / layout.tp % layout.ep);
        other.tp = i % layout.tp;
      },
      one_each);
  groups.ep = group_along(job, layout, place, 9, "ep", layout.ep, in_block, one_each);
  groups.expert_cp = group_along(
      job, layout, place, 10, "expert.cp", layout.cp / block.cp,
      [block](RankPlace& other, int i) { other.cp = other.cp % block.cp + i * block.cp; },
      [](const RankPlace& other, int) { return other.expert_cp_lanes; });
  groups.expert_dp = group_along(
      job, layout, place, 11, "expert.dp", layout.dp / block.dp,
      [block](RankPlace& other, int i) { other.dp = other.dp % block.dp + i * block.dp; },
      [](const RankPlace& other, int) { return other.expert_dp_lanes; });
  if (place.pp == 0 || place.pp == layout.pp - 1) {
    groups.tied = group_along(
        job, layout, place, 12, "tied", layout.pp > 1 ? 2 : 1,
        [&layout](RankPlace& other, int i) { other.pp = i * (layout.pp - 1); }, one_each);
  }
  return groups;
}

int node_of(const Job& job, int rank) { return rank / job.cluster.ranks_per_node; }

}  // namespace firedrill
