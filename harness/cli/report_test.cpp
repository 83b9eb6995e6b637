// firedrill report on what was kept, and the log of `--watch`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/test_answer.h"
#include "harness/cli/test_folder.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ReportVerb : public FolderTest {};

TEST_F(ReportVerb, ARunIsAPageATraceAndMetrics) {
  ASSERT_EQ(firedrill({"run", "scenarios/quickstart.yaml", "--out", at("run"), "--quiet"}).code, 0);
  const Answer answer =
      firedrill({"report", at("run"), "--html", at("a.html"), "--trace", at("a.perfetto"), "--metrics", at("a.prom")});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("wrote " + at("a.html")), HasSubstr("wrote " + at("a.perfetto")),
                                HasSubstr("wrote " + at("a.prom")), HasSubstr("useful tokens a second")));
  EXPECT_THAT(text_of(at("a.html")), AllOf(StartsWith("<!doctype html>"), HasSubstr("kill rank 2 at step 3")));
  EXPECT_THAT(text_of(at("a.perfetto")), HasSubstr("rank 3"));
  EXPECT_THAT(text_of(at("a.prom")), testing::EndsWith("# EOF\n"));
}

TEST_F(ReportVerb, ACrashCheckIsAPageAndHasNoTrace) {
  ASSERT_EQ(firedrill({"crashcheck", "scenarios/storage/one_publish.yaml", "--mutant", "protocol_latest_file",
                       "--quiet", "--json", at("crash.json")})
                .code,
            2);
  const Answer page = firedrill({"report", at("crash.json"), "--html", at("crash.html")});
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_THAT(page.out, HasSubstr("crashcheck: fail"));
  EXPECT_THAT(text_of(at("crash.html")), HasSubstr(R"("kind":"rename","path":"tmp/4-1-1","second":"latest","rank":0)"));
  const Answer trace = firedrill({"report", at("crash.json"), "--trace", at("crash.perfetto")});
  EXPECT_EQ(trace.code, 1);
  EXPECT_THAT(trace.err, HasSubstr("has no history.jsonl"));
}

TEST_F(ReportVerb, OfSeveralGoodRunsOneLineIsToldThoughItIsQuiet) {
  const Answer two = firedrill({"run", "scenarios/quickstart.yaml", "scenarios/quickstart.yaml", "--quiet"});
  EXPECT_THAT(two.out, StartsWith("PASS: 2 runs, 2 as expected, 0 not, "));
}

TEST_F(ReportVerb, WhatIsNoReportIsRefusedByName) {
  std::ofstream(at("other.json")) << R"({"schema": "firedrill.plan/1"})";
  const Answer other = firedrill({"report", at("other.json"), "--html", at("a.html")});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr(at("other.json") + " is not a report"));
  const Answer none = firedrill({"report", at("nowhere")});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("cannot read " + at("nowhere")));
}

TEST(Watch, TellsEachEventInALineOnStandardErrorWithTheAttemptsInTheirOrder) {
  pin_numerics();
  const Answer answer = firedrill({"run", "scenarios/quickstart.yaml", "--watch", "--quiet"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_THAT(answer.out, Not(HasSubstr("▶")));
  std::size_t from = 0;
  for (const char* line :
       {"scenarios/quickstart.yaml (seed 1)\n", "▽ planned: kill rank 2", "▶ attempt 1: 4 ranks, dp=4\n",
        "● acknowledged 2-1-1", "▼ kill rank 2 at step 3, backward, call 1\n", "■ attempt 1 ended: rank 2 died\n",
        "▶ attempt 2: 4 ranks, dp=4, floor 2\n", "↺ restored 2-1-1\n", "▶ attempt 4",
        "■ run ended: the job finished\n"}) {
    from = answer.err.find(line, from);
    ASSERT_NE(from, std::string::npos) << line;
  }
  EXPECT_EQ(answer.err.find("■ run ended"), answer.err.rfind("■ run ended")) << "told twice";
}

TEST(Watch, OfSeveralRunsAtATimeIsRefused) {
  const Answer answer = firedrill({"run", "scenarios/quickstart.yaml", "--watch", "--jobs", "2"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("--watch with --jobs 2"));
}

}  // namespace
}  // namespace firedrill
