#include "harness/preflight/finding.h"

#include <fmt/format.h>

#include <algorithm>

namespace firedrill::preflight {
namespace {

std::string words_of(const Finding& finding) {
  std::string text = fmt::format("{}: measured {}", finding.where, finding.measured);
  if (!finding.needed.empty()) text += fmt::format("; needed {}", finding.needed);
  if (!finding.remedy.empty()) text += fmt::format("; remedy: {}", finding.remedy);
  return text;
}

}  // namespace

std::string_view to_string(Standing standing) {
  switch (standing) {
    case Standing::go: return "go";
    case Standing::note: return "note";
    case Standing::skipped: return "skipped";
    case Standing::unknown: return "unknown";
    case Standing::no_go: return "no-go";
  }
  return "?";
}

Standing CheckResult::standing() const {
  Standing worst = Standing::go;
  for (const Finding& finding : findings) worst = std::max(worst, finding.standing);
  return worst;
}

int exit_code_of(const std::vector<CheckResult>& results) {
  Standing worst = Standing::go;
  for (const CheckResult& result : results) worst = std::max(worst, result.standing());
  if (worst == Standing::no_go) return 2;
  return worst == Standing::unknown ? 4 : 0;
}

Json to_json(const CheckResult& result) {
  Json findings = Json::array();
  for (const Finding& finding : result.findings) {
    findings.push_back({{"standing", to_string(finding.standing)},
                        {"measured", finding.measured},
                        {"needed", finding.needed},
                        {"where", finding.where},
                        {"remedy", finding.remedy}});
  }
  return {{"name", result.name},        {"standing", to_string(result.standing())}, {"headline", result.headline},
          {"duration", result.seconds}, {"findings", std::move(findings)},          {"measured", result.measured}};
}

std::vector<std::string> table_of(const std::vector<CheckResult>& results) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{:<12} {:<8} {:>7}  {}", "check", "", "seconds", "measured"));
  for (const CheckResult& result : results) {
    lines.push_back(fmt::format("{:<12} {:<8} {:>7.1f}  {}", result.name, to_string(result.standing()), result.seconds,
                                result.headline));
  }
  for (const CheckResult& result : results) {
    for (const Finding& finding : result.findings) {
      if (finding.standing == Standing::go || finding.standing == Standing::skipped) continue;
      lines.push_back(fmt::format("{:<8} {}: {}", to_string(finding.standing), result.name, words_of(finding)));
    }
  }
  return lines;
}

std::string complaint_of(const CheckResult& result) {
  std::string text;
  for (const Finding& finding : result.findings) {
    if (finding.standing < Standing::unknown) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", to_string(finding.standing), words_of(finding));
  }
  return text;
}

}  // namespace firedrill::preflight
