// The report as a person reads it: the verdict first, then why, then what happened in order.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/report/accounting.h"
#include "harness/report/report.h"

namespace firedrill {
namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string digests(const RunReport& run) {
  std::string text;
  if (run.final_digest.empty() && run.golden_digest.empty()) return text;  // nothing was trained
  if (run.final_digest.empty()) {
    text += "  final digest   none: the job did not end\n";
  } else if (run.final_digest == run.golden_digest) {
    text += fmt::format("  final digest   {}\n  golden digest  {}  equal\n", run.final_digest, run.golden_digest);
  } else {
    text += fmt::format("  final digest   {}\n  golden digest  {}\n", run.final_digest,
                        run.golden_digest.empty() ? "none" : run.golden_digest + "  DIFFERENT");
  }
  if (run.first_difference) {
    text +=
        fmt::format("  first differs  {} after step {}\n", run.first_difference->tensor, run.first_difference->step);
  }
  if (!run.golden_note.empty()) text += fmt::format("  golden         {}\n", run.golden_note);
  return text;
}

std::string faults(const RunReport& run) {
  std::string text = fmt::format("  faults         {} planned, {} fired\n", run.planned.size(), run.fired.size());
  for (const PlannedFault& planned : run.planned) {
    std::map<int, int> times;  // by attempt
    for (const FiredFault& fired : run.fired) {
      if (fired.fault == planned.fault) ++times[fired.attempt];
    }
    std::string where;
    for (const auto& [attempt, count] : times) {
      where += fmt::format("{}attempt {}{}", where.empty() ? "fired in " : "; ", attempt,
                           count > 1 ? fmt::format(", {} times", count) : "");
    }
    if (where.empty()) where = planned.may_not_fire ? "did not fire, and need not" : "DID NOT FIRE";
    text += fmt::format("    {}  ({})\n", planned.fault, where);
  }
  return text;
}

std::string properties(const RunReport& run) {
  if (run.properties.empty()) return "";
  std::size_t width = 0;
  for (const PropertyLine& property : run.properties) width = std::max(width, property.name.size());
  std::string text = "  properties\n";
  for (const PropertyLine& property : run.properties) {
    const std::string verdict = property.verdict == "pass" ? property.verdict : upper(property.verdict);
    const bool vacuous = property.verdict == "pass" && property.checked == 0;
    text += fmt::format("    {:<7} {:<{}}  {}{}{}\n", verdict, property.name, width,
                        vacuous ? "(vacuous)" : fmt::format("checked {}", property.checked),
                        property.evidence.empty() ? "" : ": ", property.evidence);
  }
  return text;
}

std::string attempts(const RunReport& run) {
  if (run.attempts.empty()) return "";
  std::string text = "  attempts\n";
  for (const AttemptLine& attempt : run.attempts) {
    text += fmt::format("    {:<3} began {}", attempt.attempt, attempt.began.empty() ? "nothing" : attempt.began);
    if (attempt.floor >= 0) text += fmt::format(", floor {}", attempt.floor);
    text += "\n";
    for (const std::string& what : attempt.what) text += fmt::format("        {}\n", what);
    if (!attempt.ended.empty()) text += fmt::format("        ended: {}\n", attempt.ended);
  }
  return text;
}

std::string placement(const RunReport& run) {
  std::string text;
  for (const PlacementLine& line : run.placement) {
    text += fmt::format("  {:<13}  {}\n", text.empty() ? "placement" : "", line.words);
  }
  for (const std::string& warning : run.warnings) text += fmt::format("  warning        {}\n", warning);
  return text;
}

std::string attribution(const RunReport& run) {
  if (run.attribution.empty()) return "";
  std::string text = "  attribution\n";
  for (const AttributionLine& line : run.attribution) text += fmt::format("    {}\n", line.text);
  return text;
}

// A pass where something else was expected must not read as one.
std::string headline(const RunReport& run) {
  return run.verdict == RunVerdict::pass && !met(run) ? "UNEXPECTED" : upper(to_string(run.verdict));
}

}  // namespace

std::string to_text(const RunReport& run) {
  std::string text =
      fmt::format("{}  {}  ({}, {}, seed {}{})  {:.2f} s\n", headline(run), run.scenario, run.world, run.layout,
                  run.seed, run.mutant.empty() ? "" : fmt::format(", mutant {}", run.mutant), run.seconds);
  if (run.mutant.empty() && run.expected != "pass") {
    text += fmt::format("  expected       {}: {}\n", run.expected, met(run) ? "met" : "NOT MET");
  }
  if (!run.reason.empty()) text += fmt::format("  reason         {}\n", run.reason);
  if (run.verdict != RunVerdict::refused) {
    text += digests(run) + placement(run) + faults(run) + properties(run) + attempts(run) + attribution(run);
    text += to_text(run.accounting);
    if (run.metrics) text += to_text(*run.metrics);
  }
  if (!run.directory.empty()) text += fmt::format("  kept in        {}\n", run.directory);
  return text;
}

std::string to_text(const Report& report) {
  std::string text;
  for (const RunReport& run : report.runs) text += to_text(run) + "\n";
  for (const std::string& line : report.lines) text += line + "\n";
  if (report.runs.size() > 1) {
    const auto good =
        std::count_if(report.runs.begin(), report.runs.end(), [](const RunReport& run) { return met(run); });
    text +=
        fmt::format("{}: {} runs, {} as expected, {} not, {:.1f} s\n", upper(to_string(report.verdict)),
                    report.runs.size(), good, static_cast<std::int64_t>(report.runs.size()) - good, report.duration);
  }
  for (const RunReport& run : report.runs) {
    if (!met(run) && !run.reproduce.empty()) text += fmt::format("reproduce: {}\n", run.reproduce);
  }
  return text;
}

}  // namespace firedrill
