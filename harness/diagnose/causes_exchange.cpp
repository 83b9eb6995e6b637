// Causes that lie between ranks: links, the size of calls, where groups lie; and what grew against another run.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "harness/diagnose/causes.h"
#include "harness/report/accounting.h"

namespace firedrill {
namespace {

// Calls of gradients in a step, below which joining them gains little.
constexpr std::int64_t calls_that_count = 6;
// Between processes of one machine a message of so many bytes takes twice as long as an empty one.
constexpr std::int64_t half_speed_of_processes = 64 * 1024;
// Of a step: what a tp or cp group over several nodes may take.
constexpr double share_of_a_spread_group = 0.25;
// How much longer than in another run.
constexpr double grown_by = 1.5;

struct SlowLink {
  const LinkFigures* link = nullptr;
  std::int64_t normal = 0;
  // Of a step: what goes one way mostly is the answer to what came the other way.
  std::int64_t cost() const {
    return static_cast<std::int64_t>(static_cast<double>(link->time() - normal) * link->messages);
  }
};

std::vector<SlowLink> links_that_stand_out(const Figures& figures) {
  std::map<int, std::vector<const LinkFigures*>> kinds;
  for (const LinkFigures& link : figures.links) kinds[link.kind].push_back(&link);
  std::vector<SlowLink> found;
  for (const auto& [kind, links] : kinds) {
    for (const LinkFigures* link : links) {
      std::vector<std::int64_t> others;
      for (const LinkFigures* other : links) {
        if (other != link) others.push_back(other->time());
      }
      // The fast ones: all links of one rank may be slow, and the others wait for what comes over them.
      const SlowLink slow{.link = link, .normal = typical_of(others)};
      if (others.empty() || ratio_of(link->time(), slow.normal) < stands_out) continue;
      if (link->time() - slow.normal < floors_of(figures.plan).message) continue;
      if (counts(slow.cost(), figures.step)) found.push_back(slow);
    }
  }
  std::sort(found.begin(), found.end(), [](const SlowLink& a, const SlowLink& b) { return a.cost() > b.cost(); });
  return found;
}

// The rank that all of these links have in common, if it has all its slow ones among them; -1: none.
int common_end(const std::vector<SlowLink>& links) {
  if (links.size() < 2) return -1;
  for (const int end : {links.front().link->rank, links.front().link->peer}) {
    const bool all = std::all_of(links.begin(), links.end(), [end](const SlowLink& slow) {
      return slow.link->rank == end || slow.link->peer == end;
    });
    if (all) return end;
  }
  return -1;
}

Cause cause_of(const SlowLink& slow) {
  const LinkFigures& link = *slow.link;
  const double times = ratio_of(link.time(), slow.normal);
  return {
      .kind = CauseKind::slow_link,
      .where = fmt::format("link {}-{}", link.rank, link.peer),
      .ranks = {link.rank, link.peer},
      .cost = slow.cost(),
      .times = times,
      .evidence = fmt::format("a message takes {} to be sent or under way, against {} on the fast links of its kind; "
                              "{:.1f} messages a step",
                              duration_text(link.time()), duration_text(slow.normal), link.messages),
      .change = {fmt::format("network between ranks {} and {}", link.rank, link.peer), "as it is",
                 "another path or node; measure it with firedrill preflight --level standard"}};
}

}  // namespace

std::int64_t half_speed_bytes(const Plan& plan) {
  if (plan.world == WorldKind::process) return half_speed_of_processes;
  const Cluster& cluster = plan.job.cluster;
  const bool one_node = plan.layout.world_size() <= cluster.ranks_per_node;
  const auto latency = one_node ? cluster.latency_in_node : cluster.latency_between_nodes;
  const double bandwidth = one_node ? cluster.bandwidth_in_node : cluster.bandwidth_between_nodes;
  return static_cast<std::int64_t>(static_cast<double>(latency.count()) * 1e-9 * bandwidth);
}

std::vector<Cause> slow_links(const Figures& figures) {
  const std::vector<SlowLink> links = links_that_stand_out(figures);
  std::vector<Cause> causes;
  for (const SlowLink& slow : links) causes.push_back(cause_of(slow));
  const int end = common_end(links);
  if (end < 0) return causes;
  Cause& cause = causes.front();
  cause.where = fmt::format("all links of rank {} that are busy", end);
  cause.ranks = {end};
  cause.change.variable = fmt::format("network device of rank {}", end);
  causes.resize(1);
  return causes;
}

std::vector<Cause> small_buckets(const Figures& figures) {
  const Layout& layout = figures.plan.layout;
  if (layout.bucket_bytes == 0) return {};
  for (const GroupFigures& group : figures.groups) {
    if (group.name != "dp" || group.calls == 0 || group.reductions < calls_that_count) continue;
    const std::int64_t bytes = group.reduced_bytes / group.reductions;
    const std::int64_t half_speed = half_speed_bytes(figures.plan);
    const std::int64_t each = group.time / group.calls;
    const std::int64_t cost = each * (group.reductions - 2);  // two would remain: gradients, and their norm
    if (bytes * 4 > half_speed || !counts(cost, figures.step)) return {};
    return {{.kind = CauseKind::small_buckets,
             .where = "group dp",
             .ranks = {},
             .cost = cost,
             .times = static_cast<double>(group.reductions) / 2,
             .evidence = fmt::format("{} reductions a step of {} bytes each, {} a call: nearly all of it latency (a "
                                     "message of {} bytes takes twice as long as an empty one)",
                                     group.reductions, bytes, duration_text(each), half_speed),
             .change = {"layout.bucket", std::to_string(layout.bucket_bytes),
                        fmt::format("{}, or 0 for one exchange", std::max(half_speed, 2 * layout.bucket_bytes))}}};
  }
  return {};
}

std::vector<Cause> spread_groups(const Figures& figures) {
  const Plan& plan = figures.plan;
  std::vector<Cause> causes;
  for (const GroupFigures& group : figures.groups) {
    if (group.name != "tp" && group.name != "cp") continue;
    std::set<int> nodes;
    const Groups groups = groups_of(plan.job, plan.layout, 0);
    for (const int rank : (group.name == "tp" ? groups.tp : groups.cp).ranks) nodes.insert(node_of(plan.job, rank));
    const double share = figures.step == 0 ? 0 : static_cast<double>(group.time) / static_cast<double>(figures.step);
    if (nodes.size() < 2 || share < share_of_a_spread_group) continue;
    causes.push_back({.kind = CauseKind::spread_group,
                      .where = "group " + group.name,
                      .ranks = {},
                      .cost = group.time,
                      .times = 1,
                      .evidence = fmt::format("its calls take {} of a step of {}, and it lies on {} nodes",
                                              duration_text(group.time), duration_text(figures.step), nodes.size()),
                      .change = {"layout." + group.name, fmt::format("over {} nodes", nodes.size()),
                                 fmt::format("at most the {} ranks of a node", plan.job.cluster.ranks_per_node)}});
  }
  return causes;
}

std::vector<Cause> grown_parts(const Figures& figures, const Figures& against) {
  struct Line {
    std::string name;
    std::int64_t now = 0;
    std::int64_t before = 0;
    std::int64_t spread = 1;  // over so many steps
  };
  // The fastest rank of each run: what grew there grew on all.
  const auto least = [](const Figures& of, StepPart part) {
    std::optional<std::int64_t> time;
    for (const RankFigures& rank : of.ranks) {
      if (rank.is_known(part)) time = std::min(time.value_or(rank.of(part).own), rank.of(part).own);
    }
    return time;
  };
  std::vector<Line> lines;
  for (const StepPart part : step_parts) {
    const std::optional<std::int64_t> now = least(figures, part);
    const std::optional<std::int64_t> before = least(against, part);
    if (!now || !before) continue;
    Line line{.name = std::string(to_string(part)), .now = *now, .before = *before};
    if (part == StepPart::checkpoint) {
      line.spread = figures.plan.job.checkpoint.every > 0 ? figures.plan.job.checkpoint.every : figures.plan.job.steps;
    }
    lines.push_back(line);
  }
  for (const GroupFigures& group : figures.groups) {
    for (const GroupFigures& before : against.groups) {
      if (before.name == group.name) lines.push_back({"group " + group.name, group.time, before.time});
    }
  }
  std::vector<Cause> causes;
  const std::int64_t chance = std::max(floors_of(figures.plan).part, floors_of(against.plan).part);
  for (const Line& line : lines) {
    if (line.now - line.before < chance) continue;
    const std::int64_t cost = (line.now - line.before) / line.spread;
    if (ratio_of(line.now, line.before) < grown_by || !counts(cost, figures.step)) continue;
    causes.push_back({.kind = CauseKind::grown,
                      .where = line.name,
                      .ranks = {},
                      .cost = cost,
                      .times = ratio_of(line.now, line.before),
                      .evidence = fmt::format("{} on every rank against {} in the other run", duration_text(line.now),
                                              duration_text(line.before)),
                      .change = {line.name, duration_text(line.now), "what it was in the other run"}});
  }
  return causes;
}

}  // namespace firedrill
