#include "harness/preflight/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/preflight/drills.h"

namespace firedrill::preflight {
namespace {

constexpr std::size_t findings_kept = 8;

}  // namespace

void SpeedTally::add(const Finding& finding) {
  Seen& seen = by_where_.try_emplace(finding.where, Seen{.first = finding}).first->second;
  ++seen.times;
}

std::vector<Finding> SpeedTally::findings(std::size_t rounds) const {
  std::vector<Finding> all;
  for (const auto& [where, seen] : by_where_) {
    Finding finding = seen.first;
    finding.where += fmt::format(", in {} of {} rounds of the load", seen.times, rounds);
    if (seen.times * 3 < rounds) {
      finding.standing = Standing::note;
      finding.remedy = "nothing, if something else was busy then; else run this level again";
    }
    all.push_back(std::move(finding));
  }
  return all;
}

CheckResult check_load(Bench& bench) {
  CheckResult result;
  const auto until = std::chrono::steady_clock::now() + bench.options.load;
  const std::vector<Drill> drills = drills_of(bench.options.job, bench.options.layout);
  std::size_t rounds = 0;
  std::size_t bad = 0;
  SpeedTally speeds;
  while (std::chrono::steady_clock::now() < until && !bench.stopped()) {
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(until - std::chrono::steady_clock::now());
    bench.tell(fmt::format("load, {} s left", left.count()));
    for (CheckResult (*const check)(Bench&) : {check_storage, check_exchange, check_stragglers}) {
      if (std::chrono::steady_clock::now() >= until || bench.stopped()) break;
      const CheckResult once = check(bench);
      bool is_bad = false;
      for (Finding finding : once.findings) {
        if (finding.standing < Standing::unknown) continue;
        if (finding.of_speed) {
          speeds.add(finding);
          continue;
        }
        is_bad = true;
        if (result.findings.size() >= findings_kept) continue;
        finding.where += fmt::format(", round {} of the load", rounds + 1);
        result.findings.push_back(std::move(finding));
      }
      bad += is_bad ? 1 : 0;
    }
    // A directory that fails its check has said so; one that hangs would hang this process in a drill.
    if (!bench.storage_answers || bench.stopped()) break;
    const CheckResult drill = run_drills(bench, {drills[rounds % drills.size()]});
    bad += drill.standing() >= Standing::unknown ? 1 : 0;
    if (drill.standing() >= Standing::unknown && result.findings.size() < findings_kept) {
      result.findings.push_back(drill.findings.front());
    }
    ++rounds;
  }
  for (Finding& finding : speeds.findings(std::max<std::size_t>(1, rounds))) {
    bad += finding.standing >= Standing::unknown ? 1 : 0;
    result.findings.push_back(std::move(finding));
  }
  if (bench.stopped()) {
    result.findings.push_back({Standing::unknown, fmt::format("it was interrupted in round {}", rounds + 1),
                               "a load to its end", "the load", "run it again"});
  }
  result.headline =
      fmt::format("{} rounds of storage, exchange, stragglers and a drill; {} of them not good", rounds, bad);
  result.measured = {{"rounds", rounds}, {"bad", bad}};
  return result;
}

}  // namespace firedrill::preflight
