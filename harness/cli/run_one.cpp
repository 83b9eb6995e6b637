#include "harness/cli/run_one.h"

#include <fmt/format.h>

#include <fstream>

namespace firedrill {
namespace {

RunReport blank(const Plan& plan) {
  RunReport report{.scenario = plan.scenario_path.empty() ? plan.scenario : plan.scenario_path,
                   .world = std::string(to_string(plan.world)),
                   .layout = to_string(plan.layout),
                   .seed = plan.seed,
                   .mutant = plan.mutant,
                   .reason = ""};
  report.expected = to_string(plan.expect);
  for (const FaultSpec& fault : plan.faults) {
    report.planned.push_back({.fault = describe(fault), .may_not_fire = fault.may_not_fire});
  }
  return report;
}

}  // namespace

RunReport refused_run(const Plan& plan, const std::string& reason) {
  RunReport report = blank(plan);
  report.verdict = RunVerdict::refused;
  report.reason = reason;
  return report;
}

RunReport run_one(Session& session, const Plan& plan, const std::optional<std::filesystem::path>& directory) {
  RunReport failed = blank(plan);
  if (directory) {
    std::error_code error;
    std::filesystem::create_directories(*directory, error);
    if (error) {
      failed.reason = fmt::format("cannot make {}: {}", directory->string(), error.message());
      return failed;
    }
  }
  Result<RunReport> run = session.run(plan, {.directory = directory});
  if (run) {
    run->metrics = metrics_of(session.history(), plan, run->accounting);
    return std::move(*run);
  }
  const Error& error = run.error();
  const bool bad_input =
      error.code == Code::invalid_input || error.code == Code::mismatch || error.code == Code::not_found;
  failed.verdict = bad_input ? RunVerdict::refused : RunVerdict::unknown;
  failed.reason = describe(error);
  failed.reproduce = reproduce_line(plan);
  return failed;
}

}  // namespace firedrill
