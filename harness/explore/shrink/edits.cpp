#include "harness/explore/shrink/edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/base/text.h"
#include "engine/job/limits.h"
#include "engine/job/planner.h"
#include "faults/budget.h"
#include "harness/scenario/recovery_mistakes.h"

namespace firedrill {

std::span<const Edit> edits() {
  static constexpr std::array<Edit, 11> all = {{
      {"in the sim world", &in_the_sim_world},
      {"fewer faults", &fewer_faults},
      {"plainer recovery", &plainer_recovery},
      {"fewer steps", &fewer_steps},
      {"fewer ranks", &fewer_ranks},
      {"simpler kinds", &simpler_kinds},
      {"plainer faults", &plainer_faults},
      {"earlier faults", &earlier_faults},
      {"plain seed", &plain_seed},
      {"plainer job", &plainer_job},
      {"faults that must fire", &faults_that_must_fire},
  }};
  return all;
}

std::vector<Plan> in_the_sim_world(const Plan& plan) {
  if (plan.world == WorldKind::sim) return {};
  Plan simpler = plan;
  simpler.world = WorldKind::sim;
  return {simpler};
}

std::vector<Plan> plainer_recovery(const Plan& plan) {
  std::vector<Plan> simpler;
  const auto add = [&](RecoverySpec recovery) {
    if (recovery == plan.recovery) return;
    simpler.push_back(plan);
    simpler.back().recovery = std::move(recovery);
  };
  const int needed = std::min(plan.recovery.budget, static_cast<int>(plan.faults.size()));
  add({.budget = needed});
  RecoverySpec here = plan.recovery;
  here.policy = RecoveryPolicy::restart;
  here.spares = 0;
  add(here);
  here = plan.recovery;
  here.backoff = {};
  add(here);
  here = plan.recovery;
  here.budget = needed;
  add(here);
  return simpler;
}

std::vector<Plan> plain_seed(const Plan& plan) {
  std::vector<Plan> simpler;
  for (std::uint64_t seed = 1; seed <= 2 && seed < plan.seed; ++seed) {
    simpler.push_back(plan);
    simpler.back().seed = seed;
  }
  return simpler;
}

std::vector<std::string> mistakes_in(const Plan& plan) {
  std::vector<std::string> all;
  const auto add = [&all](const std::vector<std::string>& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(mistakes_in(plan.job));
  add(cannot_run(plan.job));
  if (!all.empty()) return all;
  add(mistakes_in(plan.layout, plan.job));
  if (plan.recovery.layout) add(mistakes_in(*plan.recovery.layout, plan.job));
  Scenario scenario;
  scenario.layout = plan.layout;
  scenario.recovery = plan.recovery;
  scenario.world = plan.world;
  add(mistakes_in_recovery(scenario));
  if (!all.empty()) return all;
  for (const FaultSpec& fault : plan.faults) {
    add(mistakes_in_fault(fault, plan.job, layout_for(fault, plan.layout, plan.recovery.layout)));
    if (plan.world == WorldKind::process && !info_of(fault.kind).in_process_world) {
      all.push_back(fmt::format("{} exists in the sim world only", to_string(fault.kind)));
    }
  }
  add(mistakes_in_number(plan.faults));
  return all;
}

std::vector<std::string> mistakes_beyond_budget(const Plan& plan) {
  std::vector<std::string> all = mistakes_in_budget(plan.faults, plan.job, plan.recovery.budget);
  for (std::string& mistake : mistakes_in_cover(plan.faults, plan.layout)) all.push_back(std::move(mistake));
  return all;
}

std::string size_in_words(const Plan& plan) {
  std::vector<std::string> kinds;
  for (const FaultSpec& fault : plan.faults) kinds.emplace_back(to_string(fault.kind));
  std::string text = fmt::format("{} fault{}", kinds.size(), kinds.size() == 1 ? "" : "s");
  if (!kinds.empty()) text += fmt::format(" ({})", join(kinds, ", "));
  text += fmt::format(", {} step{}, {}", plan.job.steps, plan.job.steps == 1 ? "" : "s", to_string(plan.layout));
  if (plan.recovery.layout) text += fmt::format(", then {}", to_string(*plan.recovery.layout));
  if (plan.world == WorldKind::process) text += ", real processes";
  return text;
}

}  // namespace firedrill
