// The judge of exchange, and the check.
#include "harness/preflight/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/base/text.h"
#include "engine/job/memory.h"
#include "engine/job/placement.h"
#include "harness/plan/plan.h"
#include "harness/preflight/check.h"
#include "harness/preflight/storage.h"

namespace firedrill::preflight {
namespace {

constexpr double latency_beyond = 300e-6;  // seconds above the median, under which no link is called slow
constexpr std::chrono::seconds deadline_quick{25};
constexpr std::chrono::seconds deadline_long{90};
constexpr std::string_view remedy_of_link =
    "look at the cable, the port and the switch between the two, and at what else uses it";

std::string latency_text(double seconds) { return fmt::format("{:.3g} us", seconds * 1e6); }
std::string bandwidth_text(double bandwidth) {
  return bandwidth > 0 ? rounded_bytes(bandwidth) + "/s" : "a bandwidth that was not measured";
}

// What a link is compared with.
AlphaBeta usual(const std::vector<LinkMeasured>& links, bool in_node) {
  std::vector<double> latencies;
  std::vector<double> bandwidths;
  const auto same = std::ranges::count(links, in_node, &LinkMeasured::in_node);
  for (const LinkMeasured& link : links) {
    if (static_cast<std::size_t>(same) >= links_to_compare && link.in_node != in_node) continue;
    const AlphaBeta line = fit(link.one_way);
    latencies.push_back(line.latency);
    bandwidths.push_back(line.bandwidth);
  }
  return {.latency = percentile(latencies, 0.5), .bandwidth = percentile(bandwidths, 0.5)};
}

void judge_calls(const std::vector<ExchangeOfRank>& ranks, std::vector<Finding>& findings) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const GroupMeasured& group : ranks[rank].groups) {
      if (group.wrong.empty()) continue;
      findings.push_back({Standing::no_go,
                          fmt::format("{} calls of which the result was not as it must be; first: {}",
                                      group.wrong.size(), group.wrong.front()),
                          "exactly the predicted numbers", fmt::format("rank {}, group {}", rank, group.stream),
                          "look at the memory and the network card of the ranks of this group"});
    }
  }
}

void judge_links(const std::vector<LinkMeasured>& links, std::vector<Finding>& findings) {
  if (!links.empty() && links.size() < links_to_compare) {
    findings.push_back({Standing::note,
                        fmt::format("{} link{}: none can be called slow", links.size(), links.size() == 1 ? "" : "s"),
                        fmt::format("{} to compare with each other", links_to_compare), "all links of this layout",
                        "hold their numbers against what the network should give"});
  }
  const std::vector<std::size_t> slow = slow_links(links);
  std::map<int, std::size_t> slow_of;
  std::map<int, std::size_t> all_of;
  for (const LinkMeasured& link : links) {
    ++all_of[link.a];
    ++all_of[link.b];
  }
  for (const std::size_t i : slow) {
    ++slow_of[links[i].a];
    ++slow_of[links[i].b];
  }
  for (const std::size_t i : slow) {
    const LinkMeasured& link = links[i];
    const AlphaBeta line = fit(link.one_way);
    const AlphaBeta others = usual(links, link.in_node);
    std::string where = fmt::format("the link between ranks {} and {}", link.a, link.b);
    for (const int rank : {link.a, link.b}) {
      if (slow_of[rank] > 1 && slow_of[rank] == all_of[rank]) where += fmt::format("; all links of rank {}", rank);
    }
    findings.push_back({Standing::no_go,
                        fmt::format("latency {}, {}", latency_text(line.latency), bandwidth_text(line.bandwidth)),
                        fmt::format("within {} times the others: {}, {}", slow_link, latency_text(others.latency),
                                    bandwidth_text(others.bandwidth)),
                        where, std::string(remedy_of_link), true});
  }
}

// tp exchanges in every layer.
void judge_placement(const Options& options, std::vector<Finding>& findings) {
  for (const GroupPlacement& placement : placement_of(options.job, options.layout)) {
    if (placement.group != "tp" || !placement.crosses()) continue;
    findings.push_back(
        {Standing::note, to_string(placement), "tp groups inside a node",
         fmt::format("layout {}, {} ranks to a node", to_string(options.layout), options.job.cluster.ranks_per_node),
         "tp that divides cluster.ranks_per_node"});
  }
}

// "dp 120 us, 1.2GB/s" of the slowest group of each kind.
std::string groups_text(const std::vector<ExchangeOfRank>& ranks) {
  std::map<std::string, AlphaBeta> worst;
  for (const ExchangeOfRank& rank : ranks) {
    for (const GroupMeasured& group : rank.groups) {
      if (group.all_reduce.empty()) continue;
      const AlphaBeta line = fit(group.all_reduce);
      const auto [slot, fresh] = worst.try_emplace(group.kind, line);
      if (fresh) continue;
      slot->second.latency = std::max(slot->second.latency, line.latency);
      slot->second.bandwidth = std::min(slot->second.bandwidth, line.bandwidth);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [kind, line] : worst) {
    parts.push_back(fmt::format("{} {}{}", kind, latency_text(line.latency),
                                line.bandwidth > 0 ? " + " + bandwidth_text(line.bandwidth) : std::string()));
  }
  return join(parts, ", ");
}

std::vector<LinkMeasured> links_of(const std::vector<ExchangeOfRank>& ranks) {
  std::vector<LinkMeasured> links;
  for (const ExchangeOfRank& rank : ranks) links.insert(links.end(), rank.links.begin(), rank.links.end());
  return links;
}

std::string calls_text(const std::vector<ExchangeOfRank>& ranks) {
  std::size_t calls = 0;
  std::size_t wrong = 0;
  for (const ExchangeOfRank& rank : ranks) {
    for (const GroupMeasured& group : rank.groups) {
      calls += static_cast<std::size_t>(group.calls);
      wrong += group.wrong.size();
    }
  }
  return wrong == 0 ? fmt::format("{} calls right", calls) : fmt::format("{} of {} calls wrong", wrong, calls);
}

std::string headline_of(const std::vector<ExchangeOfRank>& ranks) {
  const std::vector<LinkMeasured> links = links_of(ranks);
  std::string text = fmt::format("{}; all_reduce {}", calls_text(ranks), groups_text(ranks));
  if (links.empty()) return text;
  const auto slowest =
      std::ranges::max_element(links, {}, [](const LinkMeasured& link) { return link.one_way.back().seconds; });
  const AlphaBeta line = fit(slowest->one_way);
  return text + fmt::format("; slowest link {}-{}: {}{}", slowest->a, slowest->b, latency_text(line.latency),
                            line.bandwidth > 0 ? " + " + bandwidth_text(line.bandwidth) : std::string());
}

Json work_of(const Options& options) {
  Plan plan;  // how a job and a layout travel to other processes
  plan.run_id = "preflight";
  plan.job = options.job;
  plan.layout = options.layout;
  return {{"probe", "exchange"}, {"plan", to_json(plan)}, {"bandwidth", options.level != Level::quick}};
}

void add_lines(const std::vector<ExchangeOfRank>& ranks, Json& measured) {
  measured["groups"] = Json::array();
  measured["links"] = Json::array();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const GroupMeasured& group : ranks[rank].groups) {
      const AlphaBeta line = fit(group.all_reduce);
      measured["groups"].push_back({{"rank", rank},
                                    {"group", group.stream},
                                    {"calls", group.calls},
                                    {"latency", line.latency},
                                    {"bandwidth", line.bandwidth}});
    }
    for (const LinkMeasured& link : ranks[rank].links) {
      const AlphaBeta line = fit(link.one_way);
      measured["links"].push_back({{"ranks", {link.a, link.b}},
                                   {"in_node", link.in_node},
                                   {"latency", line.latency},
                                   {"bandwidth", line.bandwidth}});
    }
  }
}

}  // namespace

AlphaBeta fit(const std::vector<TimedSize>& points) {
  if (points.empty()) return {};
  if (points.size() == 1) return {.latency = points.front().seconds};
  double bytes = 0;
  double seconds = 0;
  for (const TimedSize& point : points) {
    bytes += point.bytes / static_cast<double>(points.size());
    seconds += point.seconds / static_cast<double>(points.size());
  }
  double both = 0;
  double square = 0;
  for (const TimedSize& point : points) {
    both += (point.bytes - bytes) * (point.seconds - seconds);
    square += (point.bytes - bytes) * (point.bytes - bytes);
  }
  const double slope = square > 0 ? both / square : 0;
  // Of the smallest message the bandwidth's share is nothing: a line through it, so that large ones do not hide it.
  const auto smallest = std::ranges::min_element(points, {}, &TimedSize::bytes);
  const double latency = std::max(smallest->seconds - std::max(slope, 0.0) * smallest->bytes, 0.0);
  return {.latency = latency, .bandwidth = slope > 0 ? 1 / slope : 0};
}

std::vector<std::size_t> slow_links(const std::vector<LinkMeasured>& links) {
  std::vector<std::size_t> slow;
  if (links.size() < links_to_compare) return slow;  // nothing to compare with
  for (std::size_t i = 0; i < links.size(); ++i) {
    const AlphaBeta line = fit(links[i].one_way);
    const AlphaBeta others = usual(links, links[i].in_node);
    const bool late = line.latency > slow_link * others.latency && line.latency > others.latency + latency_beyond;
    const bool narrow = line.bandwidth > 0 && line.bandwidth * slow_link < others.bandwidth;
    if (late || narrow) slow.push_back(i);
  }
  return slow;
}

std::vector<Finding> judge_exchange(const std::vector<ExchangeOfRank>& ranks) {
  std::vector<Finding> findings;
  judge_calls(ranks, findings);
  judge_links(links_of(ranks), findings);
  return findings;
}

CheckResult check_exchange(Bench& bench) {
  CheckResult result;
  const Options& options = bench.options;
  const int world = options.layout.world_size();
  if (world == 1) {
    result.findings.push_back({Standing::skipped, "one rank has nobody to exchange with", "", "the layout", ""});
    return result;
  }
  const auto deadline = options.level == Level::quick ? deadline_quick : deadline_long;
  const Result<std::vector<RankAnswer>> answers = bench.ask(work_of(options), world, deadline);
  if (!answers) {
    result.findings.push_back(
        {Standing::unknown, answers.error().message, fmt::format("{} processes", world), "here", answers.error().hint});
    return result;
  }
  result.findings = troubles_of(*answers, fmt::format("{} ranks, layout {}", world, to_string(options.layout)),
                                deadline, "look at the network between this rank and the others, and at its firewall");
  if (!result.findings.empty()) return result;
  std::vector<ExchangeOfRank> ranks;
  for (const RankAnswer& answer : *answers) ranks.push_back(answer.measured.get<ExchangeOfRank>());
  result.findings = judge_exchange(ranks);
  judge_placement(options, result.findings);
  add_lines(ranks, result.measured);
  result.headline = headline_of(ranks);
  return result;
}

}  // namespace firedrill::preflight
