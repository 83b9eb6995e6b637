// A diagnosis as JSON and as text.
#include <fmt/format.h>

#include <algorithm>

#include "harness/diagnose/causes.h"
#include "harness/diagnose/diagnose.h"
#include "harness/report/accounting.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;

// Of a large world only the ranks with most to do are shown.
constexpr std::size_t ranks_shown = 16;
constexpr std::size_t links_shown = 6;

std::int64_t own_of(const RankFigures& rank) {
  std::int64_t own = 0;
  for (const StepPart part : step_parts) own += rank.of(part).own;
  return own;
}

std::string text_of(const RankFigures& rank, StepPart part, std::int64_t time) {
  return rank.is_known(part) ? duration_text(time) : "-";
}

std::string table_of(const Figures& figures) {
  std::vector<const RankFigures*> shown;
  for (const RankFigures& rank : figures.ranks) shown.push_back(&rank);
  if (shown.size() > ranks_shown) {
    std::stable_sort(shown.begin(), shown.end(),
                     [](const RankFigures* a, const RankFigures* b) { return own_of(*a) > own_of(*b); });
    shown.resize(ranks_shown);
  }
  std::string text =
      fmt::format("  one rank against the group: its own time in a typical step{}\n    {:>4} {:>5} {:>4}",
                  figures.ranks.size() > ranks_shown ? ", of those with most to do" : "", "rank", "stage", "node");
  for (const StepPart part : step_parts) text += fmt::format(" {:>10}", to_string(part));
  text += fmt::format(" {:>10}\n", "a file op");
  for (const RankFigures* rank : shown) {
    text += fmt::format("    {:>4} {:>5} {:>4}", rank->rank, rank->stage, rank->node);
    for (const StepPart part : step_parts) text += fmt::format(" {:>10}", text_of(*rank, part, rank->of(part).own));
    text += fmt::format(" {:>10}\n", text_of(*rank, StepPart::checkpoint, rank->per_file_change));
  }
  return text;
}

std::string slowest_of(const Figures& figures) {
  std::string text = "  the slowest, not the mean\n";
  for (const StepPart part : step_parts) {
    std::vector<std::int64_t> all;
    const RankFigures* slowest = &figures.ranks.front();
    for (const RankFigures& rank : figures.ranks) {
      if (!rank.is_known(part)) continue;
      all.push_back(rank.of(part).own);
      if (rank.of(part).own > slowest->of(part).own) slowest = &rank;
    }
    const std::int64_t most = slowest->of(part).own;
    if (most == 0) continue;
    text += fmt::format("    {:<11} rank {:<3} {:>10}, the median rank {:>10}\n", to_string(part), slowest->rank,
                        duration_text(most), duration_text(median_of(std::move(all))));
  }
  return text;
}

std::string exchange_of(const Figures& figures) {
  std::string text = "  bandwidth against latency\n";
  const std::int64_t half_speed = half_speed_bytes(figures.plan);
  for (const GroupFigures& group : figures.groups) {
    if (group.calls == 0) continue;
    const std::int64_t bytes = group.bytes / group.calls;
    const std::string_view rule = bytes < half_speed ? "latency" : "bandwidth";
    text += fmt::format("    group {:<12} {} calls of {} bytes in a step, {} each: {} rules (half speed at {} bytes)\n",
                        group.name, group.calls, bytes, duration_text(group.time / group.calls), rule, half_speed);
  }
  std::vector<LinkFigures> links = figures.links;
  std::stable_sort(links.begin(), links.end(),
                   [](const LinkFigures& a, const LinkFigures& b) { return a.time() > b.time(); });
  if (links.size() > links_shown) links.resize(links_shown);
  for (const LinkFigures& link : links) {
    text += fmt::format("    link {:>3}-{:<3} {:.1f} messages a step, each {} to send and {} under way\n", link.rank,
                        link.peer, link.messages, duration_text(link.sending), duration_text(link.under_way));
  }
  return text;
}

Json json_of(const Change& change) {
  return {{"variable", change.variable}, {"now", change.now}, {"next", change.next}};
}

Json ranks_of(const Figures& figures) {
  Json list = Json::array();
  for (const RankFigures& rank : figures.ranks) {
    // What is not known is null.
    const auto value = [&rank](StepPart part, std::int64_t time) { return rank.is_known(part) ? Json(time) : Json(); };
    Json one = {{"rank", rank.rank}, {"stage", rank.stage}, {"node", rank.node}};
    one["step"] = value(StepPart::forward, rank.step);
    for (const StepPart part : step_parts) {
      const PartOfRank& time = rank.of(part);
      one[std::string(to_string(part))] = {{"own", value(part, time.own)}, {"waiting", value(part, time.waiting)}};
    }
    one["file_operation"] = value(StepPart::checkpoint, rank.per_file_change);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

Json json_of(const Diagnosis& diagnosis) {
  const Figures& figures = diagnosis.figures;
  Json json = {{"steps", figures.steps}, {"step", figures.step}, {"checkpoint", figures.checkpoint}};
  json["ends_early"] = figures.ends_early;
  json["causes"] = Json::array();
  for (const Cause& cause : diagnosis.causes) {
    json["causes"].push_back({{"cause", to_string(cause.kind)},
                              {"where", cause.where},
                              {"ranks", cause.ranks},
                              {"cost", cause.cost},
                              {"times", cause.times},
                              {"evidence", cause.evidence},
                              {"change", json_of(cause.change)}});
  }
  json["next"] = nullptr;
  if (diagnosis.next) {
    json["next"] = json_of(*diagnosis.next);
    json["next"]["evidence"] = diagnosis.next_why;
  }
  json["differences"] = diagnosis.told;
  json["ranks"] = ranks_of(figures);
  json["links"] = Json::array();
  for (const LinkFigures& link : figures.links) {
    json["links"].push_back({{"ranks", {link.rank, link.peer}},
                             {"messages", link.messages},
                             {"bytes", link.bytes},
                             {"sending", link.sending},
                             {"under_way", link.under_way}});
  }
  json["groups"] = Json::array();
  for (const GroupFigures& group : figures.groups) {
    json["groups"].push_back(
        {{"group", group.name}, {"calls", group.calls}, {"bytes", group.bytes}, {"time", group.time}});
  }
  return json;
}

std::string to_text(const Diagnosis& diagnosis) {
  const Figures& figures = diagnosis.figures;
  std::string text = figures.ends_early ? "  the history ends before the run did: its last step is left out\n" : "";
  if (figures.steps == 0) return text + "  no rank completed a step: there is nothing to compare\n";
  text += fmt::format("  {} steps of {}", figures.steps, duration_text(figures.step));
  if (figures.checkpoint > 0) text += fmt::format(", saves of {}", duration_text(figures.checkpoint));
  text += "\n";
  for (const auto& of : {table_of, slowest_of, exchange_of}) text += of(figures);
  for (const std::string& line : diagnosis.told) text += fmt::format("  differs from the other run: {}\n", line);
  if (diagnosis.causes.empty()) text += "  nothing stands out\n";
  for (std::size_t i = 0; i < diagnosis.causes.size(); ++i) {
    const Cause& cause = diagnosis.causes[i];
    text += fmt::format("  {}. {}: {}, {} of each step\n     {}\n", i + 1, to_string(cause.kind), cause.where,
                        duration_text(cause.cost), cause.evidence);
  }
  if (diagnosis.next) {
    text += fmt::format("  change next: {}, from {} to {}\n", diagnosis.next->variable, diagnosis.next->now,
                        diagnosis.next->next);
    if (diagnosis.causes.empty()) text += fmt::format("     {}\n", diagnosis.next_why);
  }
  return text;
}

}  // namespace firedrill
