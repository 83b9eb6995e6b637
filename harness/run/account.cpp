#include <fmt/format.h>

#include "engine/job/layout.h"
#include "harness/check/property.h"
#include "harness/run/run.h"

namespace firedrill {

Accounting account_of(const History& history, const Plan& plan) {
  const Case run(history, plan);
  return accounting_of(history, [&](int attempt, int rank) -> PipelinePlace {
    const Layout& layout = run.layout_of(attempt);
    if (layout.pp == 1) return {};
    const RankPlace place = place_of(plan.job, layout, rank);
    return {.pipeline = (place.dp * layout.cp + place.cp) * layout.tp + place.tp, .first = place.pp == 0};
  });
}

std::string reproduce_line(const Plan& plan) {
  std::string line =
      fmt::format("firedrill run {} --world {} --seed {}", plan.scenario_path, to_string(plan.world), plan.seed);
  if (!plan.mutant.empty()) line += fmt::format(" --mutant {}", plan.mutant);
  for (const std::string& setting : plan.settings) line += fmt::format(" --set '{}'", setting);
  return line;
}

}  // namespace firedrill
