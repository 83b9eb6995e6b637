// Exchange: whether the collectives of every group of the layout give what they must, and how fast groups and links
// are: latency and bandwidth fitted apart (time = alpha + bytes / bandwidth, by least squares over the shortest of
// several measurements of each size), the slowest link and rank by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/preflight/finding.h"

namespace firedrill::preflight {

struct TimedSize {
  double bytes = 0;
  double seconds = 0;  // the shortest of several
};

struct AlphaBeta {
  double latency = 0;    // seconds
  double bandwidth = 0;  // bytes per second; 0: one size only, or it cannot be told from the latency
};
// Pure.
AlphaBeta fit(const std::vector<TimedSize>& points);

// What a member says of one group that it is in.
struct GroupMeasured {
  std::string kind;    // "dp"
  std::string stream;  // "dp[0-3]"
  int calls = 0;
  std::vector<std::string> wrong;  // calls that gave something else than they must, or an error
  std::vector<TimedSize> all_reduce;
};

struct LinkMeasured {
  int a = 0;
  int b = 0;
  bool in_node = true;  // by the job's cluster
  std::vector<TimedSize> one_way;
};

struct ExchangeOfRank {
  std::vector<GroupMeasured> groups;
  std::vector<LinkMeasured> links;  // on the lower rank of each
};

void to_json(Json& json, const ExchangeOfRank& rank);
void from_json(const Json& json, ExchangeOfRank& rank);

// A link that is at least this much slower than the median of its kind is one to look at.
inline constexpr double slow_link = 4;
// Fewer links of a kind say nothing about each other.
inline constexpr std::size_t links_to_compare = 3;
// Of links, by index: those whose latency or bandwidth is out of line with the others of their kind (in a node, between
// nodes; all, where there are fewer than three of the kind).
std::vector<std::size_t> slow_links(const std::vector<LinkMeasured>& links);

std::vector<Finding> judge_exchange(const std::vector<ExchangeOfRank>& ranks);

}  // namespace firedrill::preflight
