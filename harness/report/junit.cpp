// The report as JUnit XML, which CI systems show: one test suite a run, one test case for the run and one a property;
// and one for the verb where no run says what came of it.
// Format: https://github.com/testmoapp/junitxml, the subset that all readers know.
#include <fmt/format.h>

#include <algorithm>

#include "harness/report/report.h"

namespace firedrill {
namespace {

// Text inside XML 1.0. Control characters, which no XML may hold, and what is not ASCII become `?`.
std::string escaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    switch (byte) {
      case '&': result += "&amp;"; continue;
      case '<': result += "&lt;"; continue;
      case '>': result += "&gt;"; continue;
      case '"': result += "&quot;"; continue;
      case '\n': result += "&#10;"; continue;
      case '\t': result += "&#9;"; continue;
      default: break;
    }
    result += byte >= 0x20 && byte < 0x7F ? static_cast<char>(byte) : '?';
  }
  return result;
}

using Case = CaseLine;

std::vector<Case> cases_of(const RunReport& run) {
  std::vector<Case> cases;
  Case whole{.name = "run", .failure = "", .error = "", .seconds = run.seconds};
  const std::string found =
      fmt::format("verdict {}, expected {}. {}", to_string(run.verdict), run.expected, run.reason);
  if (!met(run)) (exit_code_of(run) == 4 ? whole.error : whole.failure) = found;
  cases.push_back(whole);
  for (const PropertyLine& property : run.properties) {
    Case one{.name = property.name, .failure = "", .error = ""};
    const bool wanted = met(run);  // a failure that the scenario expects is no failure of the test
    if (property.verdict == "fail" && !wanted) one.failure = "failed: " + property.evidence;
    if (property.verdict == "unknown" && !wanted) one.error = "unknown: " + property.evidence;
    cases.push_back(one);
  }
  return cases;
}

std::string suite_of(const std::string& name, const std::vector<Case>& cases, double seconds) {
  std::string body;
  int failures = 0;
  int errors = 0;
  for (const Case& one : cases) {
    body += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"", escaped(name), escaped(one.name),
                        one.seconds);
    if (one.failure.empty() && one.error.empty()) {
      body += "/>\n";
      continue;
    }
    const bool failed = !one.failure.empty();
    (failed ? failures : errors) += 1;
    body += fmt::format(">\n      <{0} message=\"{1}\"/>\n    </testcase>\n", failed ? "failure" : "error",
                        escaped(failed ? one.failure : one.error));
  }
  return fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\">\n{}"
      "  </testsuite>\n",
      escaped(name), cases.size(), failures, errors, seconds, body);
}

// What a verb found beside its runs: goldens, mutants, an audit, or input that was refused.
Case case_of_verb(const Report& report) {
  Case whole{.name = report.verb, .failure = "", .error = "", .seconds = report.duration};
  if (report.exit_code == 0) return whole;
  std::string found = fmt::format("verdict {}, exit {}", to_string(report.verdict), report.exit_code);
  for (const std::string& line : report.lines) found += fmt::format("\n{}", line);
  if (const auto mistakes = report.more.find("mistakes"); mistakes != report.more.end()) {
    for (const auto& mistake : *mistakes) found += fmt::format("\n{}", mistake.get<std::string>());
  }
  const bool failed = report.verdict == RunVerdict::fail || report.verdict == RunVerdict::liveness;
  (failed ? whole.failure : whole.error) = found;
  return whole;
}

bool explained_by_a_run(const Report& report) {
  return std::any_of(report.runs.begin(), report.runs.end(),
                     [](const RunReport& run) { return exit_code_of(run) != 0; });
}

}  // namespace

std::string to_junit(const Report& report) {
  std::string suites;
  for (const RunReport& run : report.runs)
    suites += suite_of(fmt::format("{} [{}]", run.scenario, run.world), cases_of(run), run.seconds);
  if (!report.cases.empty()) {
    suites += suite_of("firedrill " + report.verb, report.cases, report.duration);
  } else if (report.runs.empty() || (report.exit_code != 0 && !explained_by_a_run(report)))
    suites += suite_of("firedrill " + report.verb, {case_of_verb(report)}, report.duration);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"firedrill {}\" time=\"{:.3f}\">\n{}"
      "</testsuites>\n",
      escaped(report.verb), report.duration, suites);
}

}  // namespace firedrill
