// firedrill diagnose: of kept runs, with and without another one to compare with, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/cli/test_answer.h"
#include "harness/cli/test_folder.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class DiagnoseVerb : public FolderTest {
 protected:
  // Four ranks of nano, with these lines of a scenario; kept in `name`.
  void keep(const std::string& name, const std::string& lines) const {
    const std::string scenario = at(name + ".yaml");
    std::ofstream(scenario) << "schema: firedrill.scenario/1\njob: "
                            << fs::absolute("scenarios/jobs/nano.yaml").string()
                            << "\nlayout: {dp: 4}\nworld: sim\nrecovery: {policy: restart, budget: 1}\nexpect: pass\n"
                            << lines;
    const Answer answer = firedrill({"run", scenario, "--out", at(name), "--quiet"});
    ASSERT_EQ(answer.code, 0) << answer.err << answer.out;
  }
};

TEST_F(DiagnoseVerb, NamesTheSlowRankOfAKeptRunAndWhatToChange) {
  keep("slow",
       "faults:\n  - {slow: {delay: 2ms}, at: {attempt: any, rank: 2, phase: backward, op: compute}, times: 0}\n");
  const Answer answer = firedrill({"diagnose", at("slow"), "--json", at("diagnosis.json")});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, AllOf(StartsWith("slow  (sim, dp=4"), HasSubstr("1. slow rank: rank 2 (node 1)"),
                                HasSubstr("change next: node of rank 2")));
  const auto report = nlohmann::json::parse(std::ifstream(at("diagnosis.json")));
  EXPECT_EQ(report["verb"], "diagnose");
  EXPECT_EQ(report["diagnosis"]["causes"][0]["cause"], "slow rank");
  EXPECT_EQ(report["diagnosis"]["causes"][0]["ranks"], nlohmann::json({2}));
  EXPECT_EQ(report["diagnosis"]["next"]["variable"], "node of rank 2");
}

TEST_F(DiagnoseVerb, OfACleanRunSaysThatNothingStandsOutAndAgainstItWhatGrew) {
  keep("clean", "");
  const Answer clean = firedrill({"diagnose", at("clean")});
  EXPECT_EQ(clean.code, 0) << clean.err;
  EXPECT_THAT(clean.out, HasSubstr("nothing stands out"));
  keep("later", "set: {job.cluster.backward: 900us}\n");
  EXPECT_THAT(firedrill({"diagnose", at("later")}).out, HasSubstr("nothing stands out"));
  const Answer against = firedrill({"diagnose", at("later"), "--against", at("clean")});
  EXPECT_THAT(against.out, AllOf(HasSubstr("1. grown: backward"), HasSubstr("job.cluster.backward")));
}

TEST_F(DiagnoseVerb, RefusesToCompareRunsOfTwoModels) {
  keep("small", "");
  keep("large", "set: {job.model.layers: 4}\n");
  const Answer answer = firedrill({"diagnose", at("large"), "--against", at("small")});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("--against"), HasSubstr("job.model.layers is 4 in the one"),
                                HasSubstr("the same model in the same world")));
}

// Wherever it is cut off: a history is written in order, and its last step may be there of some ranks only.
TEST_F(DiagnoseVerb, SaysOfACutOffHistoryThatItEndsEarlyAndBlamesNothingInIt) {
  keep("whole", "");
  EXPECT_THAT(firedrill({"diagnose", at("whole")}).out, Not(HasSubstr("ends before the run did")));
  EXPECT_THAT(firedrill({"report", at("whole")}).out, Not(HasSubstr("ends before the run did")));
  std::vector<std::string> lines;
  std::ifstream file(at("whole/history.jsonl"));
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  const auto end = std::ranges::find_if(
      lines, [](const std::string& line) { return line.find("\"run_ended\"") != std::string::npos; });
  ASSERT_NE(end, lines.end());
  for (auto count = static_cast<std::size_t>(end - lines.begin()); count > 250; count -= 37) {
    std::ofstream cut(at("whole/history.jsonl"));
    for (std::size_t i = 0; i < count; ++i) cut << lines[i] << "\n";
    cut.close();
    const Answer answer = firedrill({"diagnose", at("whole")});
    EXPECT_EQ(answer.code, 0) << answer.err;
    EXPECT_THAT(answer.out, AllOf(HasSubstr("the history ends before the run did"), Not(HasSubstr(" 1. ")))) << count;
  }
  EXPECT_THAT(firedrill({"report", at("whole")}).out, HasSubstr("the history ends before the run did"));
}

TEST_F(DiagnoseVerb, RefusesWhatHoldsNoAccountsAndSaysHowToGetThem) {
  const Answer missing = firedrill({"diagnose", at("nowhere")});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("nowhere has no history.jsonl"), HasSubstr("--out DIR")));
  keep("bare", "");
  std::ofstream(at("bare/history.jsonl")) << "{\"schema\":\"firedrill.history/1\"}\n";
  const Answer bare = firedrill({"diagnose", at("bare")});
  EXPECT_EQ(bare.code, 1);
  EXPECT_THAT(bare.err, HasSubstr("does not say what its ranks spent their time on"));
}

}  // namespace
}  // namespace firedrill
