// The load of level full: what the other checks look at once is looked at again and again, as a long run would.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/preflight/drills.h"

namespace firedrill::preflight {
namespace {

constexpr std::size_t findings_kept = 8;

}  // namespace

CheckResult check_load(Bench& bench) {
  CheckResult result;
  const auto until = std::chrono::steady_clock::now() + bench.options.load;
  const std::vector<Drill> drills = drills_of(bench.options.job, bench.options.layout);
  std::size_t rounds = 0;
  std::size_t bad = 0;
  while (std::chrono::steady_clock::now() < until && !bench.stopped()) {
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(until - std::chrono::steady_clock::now());
    bench.tell(fmt::format("load, {} s left", left.count()));
    for (CheckResult (*const check)(Bench&) : {check_storage, check_exchange, check_stragglers}) {
      if (std::chrono::steady_clock::now() >= until || bench.stopped()) break;
      const CheckResult once = check(bench);
      bad += once.standing() >= Standing::unknown ? 1 : 0;
      for (Finding finding : once.findings) {
        if (finding.standing < Standing::unknown || result.findings.size() >= findings_kept) continue;
        finding.where += fmt::format(", round {} of the load", rounds + 1);
        result.findings.push_back(std::move(finding));
      }
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
