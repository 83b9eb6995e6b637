#include "harness/report/accounting.h"

#include <fmt/format.h>

#include <algorithm>

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Spread& spread) {
  return {{"p50", spread.p50},           {"p95", spread.p95},           {"max", spread.max},
          {"max_rank", spread.max_rank}, {"max_step", spread.max_step}, {"samples", spread.samples}};
}

Json json_of(const std::vector<SpentLine>& lines, const char* key) {
  Json list = Json::array();
  for (const SpentLine& line : lines) {
    list.push_back({{key, line.what}, {"time", json_of(line.time)}, {"waiting", json_of(line.waiting)}});
  }
  return list;
}

std::string lines_of(const std::vector<SpentLine>& lines) {
  std::string text;
  for (const SpentLine& line : lines) {
    text += fmt::format("    {:<12} {:>10} {:>10} {:>10}  rank {}, step {}; waiting {} at most\n", line.what,
                        duration_text(line.time.p50), duration_text(line.time.p95), duration_text(line.time.max),
                        line.time.max_rank, line.time.max_step, duration_text(line.waiting.max));
  }
  return text;
}

}  // namespace

std::string duration_text(std::int64_t nanoseconds) {
  const auto ns = static_cast<double>(nanoseconds);
  if (nanoseconds >= 1'000'000'000) return fmt::format("{:.2f} s", ns / 1e9);
  if (nanoseconds >= 1'000'000) return fmt::format("{:.2f} ms", ns / 1e6);
  if (nanoseconds <= -50 || nanoseconds >= 50 || nanoseconds == 0) return fmt::format("{:.1f} us", ns / 1e3);
  return fmt::format("{} ns", nanoseconds);
}

Json json_of(const Accounting& accounting) {
  Json json = {{"phases", json_of(accounting.phases, "phase")}, {"groups", json_of(accounting.groups, "group")}};
  json["exchanges"] = Json::array();
  for (const ExchangedLine& line : accounting.exchanges) {
    json["exchanges"].push_back({{"group", line.group},
                                 {"operation", line.operation},
                                 {"calls", line.calls},
                                 {"bytes", line.bytes},
                                 {"bytes_of_rank", json_of(line.bytes_of_rank)},
                                 {"waiting", json_of(line.waiting)}});
  }
  json["ranks"] = Json::array();
  for (const RankIdle& rank : accounting.ranks) {
    json["ranks"].push_back(
        {{"rank", rank.rank}, {"time", rank.time}, {"idle", rank.idle}, {"idle_share", rank.share()}});
  }
  json["slowest_rank"] = accounting.slowest_rank;
  json["memory"] = nullptr;
  if (accounting.memory) {
    json["memory"] = {{"high_water", json_of(accounting.memory->high_water)},
                      {"persistent", json_of(accounting.memory->persistent)}};
  }
  json["bubble"] = nullptr;
  if (accounting.bubble) {
    const Bubble& bubble = *accounting.bubble;
    json["bubble"] = {{"p50", bubble.p50}, {"p95", bubble.p95}, {"max", bubble.max}, {"samples", bubble.samples}};
  }
  return json;
}

std::string to_text(const Accounting& accounting) {
  if (accounting.empty()) return "";
  std::string text =
      fmt::format("  time of a rank in a step\n    {:<12} {:>10} {:>10} {:>10}  where\n", "phase", "p50", "p95", "max");
  text += lines_of(accounting.phases);
  if (!accounting.groups.empty()) text += "  time in the calls of a group\n" + lines_of(accounting.groups);
  if (!accounting.exchanges.empty()) text += "  sent\n";
  for (const ExchangedLine& line : accounting.exchanges) {
    text +=
        fmt::format("    {:<12} {:<14} {:>12} bytes in {} calls; a rank in a step: {} at p50, {} at most (rank {})\n",
                    line.group, line.operation, line.bytes, line.calls, line.bytes_of_rank.p50, line.bytes_of_rank.max,
                    line.bytes_of_rank.max_rank);
  }
  const auto most = std::max_element(accounting.ranks.begin(), accounting.ranks.end(),
                                     [](const RankIdle& a, const RankIdle& b) { return a.share() < b.share(); });
  const auto least = std::min_element(accounting.ranks.begin(), accounting.ranks.end(),
                                      [](const RankIdle& a, const RankIdle& b) { return a.share() < b.share(); });
  text += fmt::format("  idle           rank {} {:.1f} %, at most; rank {} {:.1f} %, at least; slowest: rank {}\n",
                      most->rank, 100 * most->share(), least->rank, 100 * least->share(), accounting.slowest_rank);
  if (accounting.memory) {
    const Spread& high_water = accounting.memory->high_water;
    text += fmt::format(
        "  memory         {} bytes at p50, {} at most (rank {}, step {}); of them {} at most outlive a step\n",
        high_water.p50, high_water.max, high_water.max_rank, high_water.max_step, accounting.memory->persistent.max);
  }
  if (accounting.bubble) {
    text += fmt::format("  bubble         {:.1f} % of a pipeline's step at p50, {:.1f} % at p95, {:.1f} % at most\n",
                        100 * accounting.bubble->p50, 100 * accounting.bubble->p95, 100 * accounting.bubble->max);
  }
  return text;
}

}  // namespace firedrill
