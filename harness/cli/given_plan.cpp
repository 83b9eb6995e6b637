#include "harness/cli/given_plan.h"

#include <fmt/format.h>

#include "engine/job/limits.h"
#include "engine/job/planner.h"
#include "faults/budget.h"
#include "harness/cli/kept_run.h"
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

std::vector<std::string> mistakes_in_choices(const Plan& plan) {
  std::vector<std::string> found;
  for (auto& mistakes : {mistakes_in(plan.job), cannot_run(plan.job), mistakes_and_remedies(plan.layout, plan.job)}) {
    found.insert(found.end(), mistakes.begin(), mistakes.end());
  }
  if (plan.recovery.layout) {
    for (const std::string& mistake : mistakes_and_remedies(*plan.recovery.layout, plan.job)) {
      found.push_back(fmt::format("recovery.{}", mistake));
    }
  }
  for (std::size_t i = 0; i < plan.faults.size() && found.empty(); ++i) {
    const FaultSpec& fault = plan.faults[i];
    if (fault.may_not_fire) continue;  // a drawn place that the run may never reach
    for (const std::string& mistake :
         mistakes_in_fault(fault, plan.job, layout_for(fault, plan.layout, plan.recovery.layout))) {
      found.push_back(fmt::format("faults[{}]: {}", i, mistake));
    }
  }
  if (plan.recovery.budget < 0) {
    found.push_back(fmt::format("recovery.budget is {}: give 0 or more restarts", plan.recovery.budget));
  }
  if (plan.run_id != run_id_of(plan.job)) {
    found.push_back(fmt::format("run_id is {}: that of its job is {}", plan.run_id, run_id_of(plan.job)));
  }
  if (!plan.mutant.empty() && find_mutant(plan.mutant) == nullptr) {
    found.push_back(fmt::format("mutant is {}: there is no such mutant; see `firedrill list mutants`", plan.mutant));
  }
  return found;
}

}  // namespace

std::filesystem::path plan_file_of(const std::filesystem::path& given) {
  std::error_code failed;  // reading says what is wrong
  return std::filesystem::is_directory(given, failed) ? given / "plan.json" : given;
}

std::optional<Plan> read_given_plan(const std::filesystem::path& given, std::vector<std::string>& mistakes) {
  const std::filesystem::path file = plan_file_of(given);
  if (const Status readable = may_be_read(file); !readable) {
    mistakes.push_back(describe(readable.error()));
    return std::nullopt;
  }
  Result<Plan> plan = read_plan(file);
  if (!plan) {
    mistakes.push_back(describe(plan.error()));
    return std::nullopt;
  }
  const std::vector<std::string> found = mistakes_in_choices(*plan);
  for (const std::string& mistake : found) mistakes.push_back(fmt::format("{}: {}", file.string(), mistake));
  if (!found.empty()) return std::nullopt;
  return std::move(*plan);
}

}  // namespace firedrill
