// The judge of stragglers, and the check.
#include "harness/preflight/straggler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "harness/preflight/check.h"
#include "harness/preflight/storage.h"

namespace firedrill::preflight {
namespace {

constexpr std::chrono::seconds deadline{90};

// Of two the faster one.
double lower_median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[(times.size() - 1) / 2];
}

std::vector<double> over_rounds(const Rounds& rounds) {
  std::vector<double> times;
  for (std::size_t rank = 0; rank < rounds.front().size(); ++rank) {
    std::vector<double> of_rank;
    for (const std::vector<double>& round : rounds) of_rank.push_back(round[rank]);
    times.push_back(percentile(of_rank, 0.5));
  }
  return times;
}

std::string headline_of(const StragglerMeasured& measured) {
  std::vector<std::string> parts;
  for (const WorkOfRank work : works_of_rank) {
    const std::vector<double> times = over_rounds(measured.rounds[static_cast<std::size_t>(work)]);
    const auto worst = std::ranges::max_element(times);
    parts.push_back(
        fmt::format("{} {:.2f} (rank {})", to_string(work), *worst / lower_median(times), worst - times.begin()));
  }
  return fmt::format(
      "slowest against median: {}; blamed from {} times on in every look, false alarms at most 1 in {:.0f}",
      join(parts, ", "), straggler_ratio, 1 / false_alarms);
}

}  // namespace

std::string_view to_string(WorkOfRank work) {
  switch (work) {
    case WorkOfRank::compute: return "compute";
    case WorkOfRank::memory: return "memory";
    case WorkOfRank::input: return "input";
  }
  return "?";
}

int confirmations(int ranks) { return static_cast<int>(std::ceil(std::log2(ranks / false_alarms))) - straggler_rounds; }

std::vector<Suspicion> suspects(WorkOfRank work, const Rounds& rounds) {
  std::vector<Suspicion> found;
  const int ranks = static_cast<int>(rounds.front().size());
  const std::vector<double> overall = over_rounds(rounds);
  const double median = lower_median(overall);
  const int reference = static_cast<int>(std::ranges::find(overall, median) - overall.begin());
  for (int rank = 0; rank < ranks; ++rank) {
    const bool each_time = std::ranges::all_of(rounds, [rank](const std::vector<double>& round) {
      return round[static_cast<std::size_t>(rank)] >= straggler_ratio * lower_median(round);
    });
    if (rank != reference && each_time)
      found.push_back({.work = work, .rank = rank, .reference = reference, .again = {}});
  }
  return found;
}

bool confirmed(const Suspicion& suspicion) {
  return !suspicion.again.empty() && std::ranges::all_of(suspicion.again, [](const PairOfTimes& pair) {
    return pair.suspect >= straggler_ratio * pair.reference;
  });
}

void to_json(Json& json, const StragglerMeasured& measured) {
  json = Json::object();
  for (const WorkOfRank work : works_of_rank) {
    json["seconds"][std::string(to_string(work))] = measured.rounds[static_cast<std::size_t>(work)];
  }
  json["suspected"] = Json::array();
  for (const Suspicion& one : measured.suspicions) {
    Json again = Json::array();
    for (const PairOfTimes& pair : one.again) again.push_back({pair.suspect, pair.reference});
    json["suspected"].push_back(
        {{"work", static_cast<int>(one.work)}, {"rank", one.rank}, {"reference", one.reference}, {"again", again}});
  }
}

void from_json(const Json& json, StragglerMeasured& measured) {
  for (const WorkOfRank work : works_of_rank) {
    measured.rounds[static_cast<std::size_t>(work)] = json.at("seconds").at(std::string(to_string(work))).get<Rounds>();
  }
  for (const Json& one : json.at("suspected")) {
    Suspicion suspicion{.work = static_cast<WorkOfRank>(one.at("work").get<int>()),
                        .rank = one.at("rank"),
                        .reference = one.at("reference"),
                        .again = {}};
    for (const Json& pair : one.at("again")) {
      suspicion.again.push_back({.suspect = pair.at(0), .reference = pair.at(1)});
    }
    measured.suspicions.push_back(std::move(suspicion));
  }
}

std::vector<Finding> judge_stragglers(const StragglerMeasured& measured) {
  std::vector<Finding> findings;
  for (const Suspicion& suspicion : measured.suspicions) {
    if (!confirmed(suspicion)) continue;
    std::vector<double> ratios;
    for (const PairOfTimes& pair : suspicion.again) ratios.push_back(pair.suspect / pair.reference);
    findings.push_back({Standing::no_go,
                        fmt::format("{} takes {:.1f} times as long as on rank {} (median of {} looks, {:.1f} at least)",
                                    to_string(suspicion.work), percentile(ratios, 0.5), suspicion.reference,
                                    ratios.size(), percentile(ratios, 0)),
                        fmt::format("less than {} times", straggler_ratio), fmt::format("rank {}", suspicion.rank),
                        "look at what else runs there, at quotas (cgroup), clock rates and temperature; or leave that "
                        "node out",
                        true});
  }
  return findings;
}

CheckResult check_stragglers(Bench& bench) {
  CheckResult result;
  const int world = bench.options.layout.world_size();
  if (world == 1) {
    result.findings.push_back({Standing::skipped, "one rank has nobody to be compared with", "", "the layout", ""});
    return result;
  }
  const Result<std::vector<RankAnswer>> answers =
      bench.ask({{"probe", "straggler"}, {"corpus", bench.options.job.data.corpus}}, world, deadline);
  if (!answers) {
    result.findings.push_back(
        {Standing::unknown, answers.error().message, fmt::format("{} processes", world), "here", answers.error().hint});
    return result;
  }
  result.findings = troubles_of(*answers, "this machine", deadline, "look at what the rank was doing");
  if (!result.findings.empty()) return result;
  result.measured = answers->front().measured;  // all ranks have the same
  const auto measured = result.measured.get<StragglerMeasured>();
  result.findings = judge_stragglers(measured);
  result.headline = headline_of(measured);
  return result;
}

}  // namespace firedrill::preflight
