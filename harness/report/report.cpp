#include "harness/report/report.h"

#include <algorithm>

namespace firedrill {

std::string_view to_string(RunVerdict verdict) {
  switch (verdict) {
    case RunVerdict::pass: return "pass";
    case RunVerdict::fail: return "fail";
    case RunVerdict::liveness: return "liveness";
    case RunVerdict::unknown: return "unknown";
    case RunVerdict::refused: return "refused";
  }
  return "unknown";
}

int exit_code_of(RunVerdict verdict) {
  switch (verdict) {
    case RunVerdict::pass: return 0;
    case RunVerdict::refused: return 1;
    case RunVerdict::fail: return 2;
    case RunVerdict::liveness: return 3;
    case RunVerdict::unknown: return 4;
  }
  return 4;
}

namespace {

// An unknown property may hide a fault that never fired: then the run that never ended is not the one that was meant.
bool any_unknown(const RunReport& run) {
  return std::any_of(run.properties.begin(), run.properties.end(),
                     [](const PropertyLine& property) { return property.verdict == "unknown"; });
}

}  // namespace

bool met(const RunReport& run) {
  if (!run.mutant.empty() || run.expected == "pass") return run.verdict == RunVerdict::pass;
  if (run.expected == "liveness") return run.verdict == RunVerdict::liveness && !any_unknown(run);
  if (run.expected == "refuse") return run.verdict == RunVerdict::refused;
  if (!run.expected.starts_with("fail: ") || run.verdict != RunVerdict::fail) return false;
  const std::string wanted = run.expected.substr(6);
  return std::any_of(run.properties.begin(), run.properties.end(), [&wanted](const PropertyLine& property) {
    return property.name == wanted && property.verdict == "fail";
  });
}

int exit_code_of(const RunReport& run) {
  if (met(run)) return 0;
  if (run.mutant.empty() && run.expected == "liveness" && run.verdict == RunVerdict::liveness)
    return exit_code_of(RunVerdict::unknown);
  // Something else was expected than the pass that came: the harness, not the engine, promised too little.
  return run.verdict == RunVerdict::pass ? 2 : exit_code_of(run.verdict);
}

int combined_exit_code(const std::vector<int>& codes) {
  for (const int code : {1, 2, 3, 4}) {
    if (std::find(codes.begin(), codes.end(), code) != codes.end()) return code;
  }
  return 0;
}

RunVerdict verdict_of_exit_code(int code) {
  for (const RunVerdict verdict :
       {RunVerdict::pass, RunVerdict::refused, RunVerdict::fail, RunVerdict::liveness, RunVerdict::unknown}) {
    if (exit_code_of(verdict) == code) return verdict;
  }
  return RunVerdict::unknown;
}

void conclude(Report& report) {
  std::vector<int> codes;
  for (const RunReport& run : report.runs) codes.push_back(exit_code_of(run));
  report.exit_code = combined_exit_code(codes);
  report.verdict = verdict_of_exit_code(report.exit_code);
}

}  // namespace firedrill
