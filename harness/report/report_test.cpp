#include "harness/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace firedrill {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

RunReport a_pass() {
  return {.scenario = "scenarios/quickstart.yaml",
          .world = "sim",
          .layout = "dp=4",
          .seed = 7,
          .verdict = RunVerdict::pass,
          .final_digest = "00ff",
          .golden_digest = "00ff",
          .planned = {{.fault = "kill rank 2 at step 3"}},
          .fired = {{.fault = "kill rank 2 at step 3", .attempt = 1, .rank = 2, .step = 3, .phase = "backward"}},
          .properties = {{.name = "one_provenance", .verdict = "pass", .checked = 0},
                         {.name = "faults_fired", .verdict = "pass", .checked = 1}},
          .attempts = {{.attempt = 1, .began = "from step 0", .what = {"acknowledged step 2"}, .ended = "rank 2 died"},
                       {.attempt = 2, .floor = 2, .began = "from step 2", .ended = "job finished"}},
          .seconds = 0.25,
          .reproduce = "firedrill run scenarios/quickstart.yaml --seed 7"};
}

RunReport a_failure() {
  RunReport run = a_pass();
  run.verdict = RunVerdict::fail;
  run.reason = "one_provenance failed";
  run.final_digest = "00fe";
  run.first_difference = DifferenceLine{.tensor = "layers.0.mlp", .step = 4};
  run.properties[0] = {.name = "one_provenance", .verdict = "fail", .checked = 3, .evidence = "a < b & \"c\"\x01\xff"};
  return run;
}

Report report_of(std::vector<RunReport> runs) {
  Report report{.verb = "run", .environment = {.version = "0.1.0", .commit = "abc", .cores = 2}, .seed = 7};
  report.runs = std::move(runs);
  conclude(report);
  return report;
}

// Reads the XML that we write: elements nest, attributes are quoted, entities are known. Returns how often each element
// opens; -1 for "" if it is not well formed.
std::map<std::string, int> elements_of(std::string_view xml) {
  std::map<std::string, int> seen;
  std::vector<std::string> open;
  const std::map<std::string, int> broken{{"", -1}};
  std::size_t at = xml.find("?>");
  if (at == std::string_view::npos) return broken;
  while ((at = xml.find('<', at)) != std::string_view::npos) {
    std::size_t end = at;
    for (bool quoted = false; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') quoted = !quoted;
      if (quoted && xml[end] == '<') return broken;
      if (static_cast<unsigned char>(xml[end]) < 0x20 && xml[end] != '\n') return broken;
      if (xml[end] == '&' && xml.substr(end, 6).find(';') == std::string_view::npos) return broken;
    }
    if (end == xml.size()) return broken;
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return broken;
      open.pop_back();
    } else {
      const std::string name(tag.substr(0, tag.find_first_of(" /")));
      ++seen[name];
      if (!tag.ends_with('/')) open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? seen : broken;
}

TEST(Report, ExitCodesAreThoseThatScriptsDependOn) {
  EXPECT_EQ(exit_code_of(RunVerdict::pass), 0);
  EXPECT_EQ(exit_code_of(RunVerdict::refused), 1);
  EXPECT_EQ(exit_code_of(RunVerdict::fail), 2);
  EXPECT_EQ(exit_code_of(RunVerdict::liveness), 3);
  EXPECT_EQ(exit_code_of(RunVerdict::unknown), 4);
  EXPECT_EQ(combined_exit_code({0, 4, 2, 3}), 2);
  EXPECT_EQ(combined_exit_code({0, 4}), 4);
  EXPECT_EQ(combined_exit_code({}), 0);
}

TEST(Report, AMetExpectationIsZeroAndAnUnmetOneIsNot) {
  RunReport run = a_failure();
  EXPECT_EQ(exit_code_of(run), 2);
  run.expected = "fail: one_provenance";
  EXPECT_EQ(exit_code_of(run), 0);
  run.expected = "fail: faults_fired";
  EXPECT_EQ(exit_code_of(run), 2);
  run.verdict = RunVerdict::liveness;
  EXPECT_EQ(exit_code_of(run), 3);
  run.expected = "liveness";
  EXPECT_EQ(exit_code_of(run), 0);
  run.verdict = RunVerdict::pass;
  EXPECT_EQ(exit_code_of(run), 2);
  run.expected = "refuse";
  run.verdict = RunVerdict::refused;
  EXPECT_EQ(exit_code_of(run), 0);
}

TEST(Report, AnExpectedLivenessIsNotMetWhileAPropertyIsUnknown) {
  RunReport run = a_pass();
  run.expected = "liveness";
  run.verdict = RunVerdict::liveness;
  EXPECT_EQ(exit_code_of(run), 0);
  run.properties[1] = {.name = "faults_fired", .verdict = "unknown", .evidence = "a fault did not fire"};
  EXPECT_FALSE(met(run));
  EXPECT_EQ(exit_code_of(run), 4);
  EXPECT_EQ(elements_of(to_junit(report_of({run})))["error"], 2);
  run.expected = "pass";
  EXPECT_EQ(exit_code_of(run), 3);
}

TEST(Report, AMutantAlwaysReportsTheRawVerdict) {
  RunReport run = a_failure();
  run.expected = "fail: one_provenance";
  run.mutant = "protocol_rename_without_sync";
  EXPECT_EQ(exit_code_of(run), 2);
}

TEST(Report, JsonHasTheFieldsThatScriptsDependOn) {
  const auto json = nlohmann::json::parse(to_json(report_of({a_pass(), a_failure()})));
  EXPECT_EQ(json["schema"], "firedrill.report/1");
  EXPECT_EQ(json["verb"], "run");
  for (const char* key : {"version", "commit", "numerics_key", "cores"}) EXPECT_TRUE(json["environment"].contains(key));
  EXPECT_EQ(json["verdict"], "fail");
  EXPECT_EQ(json["exit_code"], 2);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_TRUE(json["duration"].is_number());
  ASSERT_EQ(json["runs"].size(), 2);
  const auto& pass = json["runs"][0];
  EXPECT_EQ(pass["scenario"], "scenarios/quickstart.yaml");
  EXPECT_EQ(pass["world"], "sim");
  EXPECT_EQ(pass["layout"], "dp=4");
  EXPECT_EQ(pass["final_digest"], "00ff");
  EXPECT_EQ(pass["golden_digest"], "00ff");
  EXPECT_TRUE(pass["first_difference"].is_null());
  EXPECT_EQ(pass["faults"]["planned"].size(), 1);
  EXPECT_EQ(pass["faults"]["fired"][0]["phase"], "backward");
  EXPECT_EQ(pass["properties"][0]["verdict"], "pass");
  EXPECT_EQ(pass["properties"][0]["checked"], 0);
  EXPECT_EQ(json["runs"][1]["first_difference"]["step"], 4);
  EXPECT_EQ(json["runs"][1]["first_difference"]["tensor"], "layers.0.mlp");
}

TEST(Report, FieldsOfAVerbStandBesideTheCommonOnes) {
  Report report = report_of({});
  report.verb = "mutants";
  report.more["survived"] = {"a"};
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["survived"][0], "a");
  EXPECT_EQ(json["verdict"], "pass");
}

TEST(Report, JUnitIsWellFormedAndCountsACaseARunAndAProperty) {
  const std::string xml = to_junit(report_of({a_pass(), a_failure()}));
  auto seen = elements_of(xml);
  EXPECT_FALSE(seen.contains("")) << xml;
  EXPECT_EQ(seen["testsuite"], 2);
  EXPECT_EQ(seen["testcase"], 6);
  EXPECT_EQ(seen["failure"], 2);
  EXPECT_EQ(seen["error"], 0);
  EXPECT_THAT(xml, HasSubstr("a &lt; b &amp; &quot;c&quot;??"));
}

TEST(Report, JUnitTurnsRedOnlyForWhatWasNotExpected) {
  RunReport run = a_failure();
  run.expected = "fail: one_provenance";
  auto seen = elements_of(to_junit(report_of({run})));
  EXPECT_EQ(seen["failure"], 0);
  run.verdict = RunVerdict::unknown;
  seen = elements_of(to_junit(report_of({run})));
  EXPECT_EQ(seen["error"], 1);
  EXPECT_EQ(seen["failure"], 1);
}

TEST(Report, JUnitHasACaseForAVerbThatNoRunSpeaksFor) {
  Report report = report_of({});
  report.verb = "golden";
  auto seen = elements_of(to_junit(report));
  EXPECT_EQ(seen["testcase"], 1);
  EXPECT_EQ(seen["failure"] + seen["error"], 0);
  report.exit_code = 2;
  report.verdict = RunVerdict::fail;
  report.lines = {"different  nano <x>"};
  EXPECT_EQ(elements_of(to_junit(report))["failure"], 1);
  EXPECT_THAT(to_junit(report), HasSubstr("different  nano &lt;x&gt;"));
  report.exit_code = 1;
  report.verdict = RunVerdict::refused;
  report.more["mistakes"] = {"there is no such file"};
  EXPECT_EQ(elements_of(to_junit(report))["error"], 1);
  EXPECT_THAT(to_junit(report), HasSubstr("there is no such file"));
  // A failure that a run explains is counted there, and once.
  EXPECT_THAT(to_junit(report_of({a_failure()})), Not(HasSubstr("\"firedrill run\" tests")));
  Report beside = report_of({a_pass()});
  beside.exit_code = 4;
  beside.verdict = RunVerdict::unknown;
  EXPECT_EQ(elements_of(to_junit(beside))["error"], 1);
}

TEST(Report, TextSaysTheVerdictFirstAndHowToReproduceLast) {
  const std::string text = to_text(report_of({a_failure()}));
  EXPECT_THAT(text, StartsWith("FAIL  scenarios/quickstart.yaml"));
  EXPECT_THAT(text, EndsWith("reproduce: firedrill run scenarios/quickstart.yaml --seed 7\n"));
  EXPECT_THAT(text, HasSubstr("DIFFERENT"));
  EXPECT_THAT(text, HasSubstr("layers.0.mlp after step 4"));
  EXPECT_THAT(text, HasSubstr("FAIL    one_provenance  checked 3: a < b"));
}

TEST(Report, TextOfAPassTellsTheAttemptsAndAsksForNothing) {
  const std::string text = to_text(report_of({a_pass()}));
  EXPECT_THAT(text, StartsWith("PASS"));
  EXPECT_THAT(text, Not(HasSubstr("reproduce")));
  EXPECT_THAT(text, HasSubstr("equal"));
  EXPECT_THAT(text, HasSubstr("one_provenance  (vacuous)"));
  EXPECT_THAT(text, HasSubstr("kill rank 2 at step 3  (fired in attempt 1)"));
  EXPECT_THAT(text, HasSubstr("2   began from step 2, floor 2"));
}

TEST(Report, TextNamesAFaultThatDidNotFire) {
  RunReport run = a_pass();
  run.fired.push_back(run.fired.front());
  EXPECT_THAT(to_text(run), HasSubstr("(fired in attempt 1, 2 times)"));
  run.fired.clear();
  EXPECT_THAT(to_text(run), HasSubstr("DID NOT FIRE"));
  run.planned[0].may_not_fire = true;
  EXPECT_THAT(to_text(run), HasSubstr("need not"));
}

}  // namespace
}  // namespace firedrill
