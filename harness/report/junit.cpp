// The report as JUnit XML, which CI systems show: one test suite a run, one test case for the run and one a property.
// Format: https://github.com/testmoapp/junitxml, the subset that all readers know.
#include <fmt/format.h>

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

struct Case {
  std::string name;
  std::string failure;  // empty: none
  std::string error;
  double seconds = 0.0;
};

std::vector<Case> cases_of(const RunReport& run) {
  std::vector<Case> cases;
  Case whole{.name = "run", .failure = "", .error = "", .seconds = run.seconds};
  const std::string found =
      fmt::format("verdict {}, expected {}. {}", to_string(run.verdict), run.expected, run.reason);
  if (!met(run)) (run.verdict == RunVerdict::unknown ? whole.error : whole.failure) = found;
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

std::string suite_of(const RunReport& run) {
  std::string body;
  int failures = 0;
  int errors = 0;
  const std::string name = fmt::format("{} [{}]", run.scenario, run.world);
  const std::vector<Case> cases = cases_of(run);
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
      escaped(name), cases.size(), failures, errors, run.seconds, body);
}

}  // namespace

std::string to_junit(const Report& report) {
  std::string suites;
  for (const RunReport& run : report.runs) suites += suite_of(run);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"firedrill {}\" time=\"{:.3f}\">\n{}"
      "</testsuites>\n",
      escaped(report.verb), report.duration, suites);
}

}  // namespace firedrill
