#include "harness/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/test_history.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

// What the page's script reads.
Json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

const Json& report() {
  static const Json one = {{"schema", "firedrill.report/1"}, {"verb", "run"}, {"runs", Json::array()}};
  return one;
}

TEST(Page, HoldsTheReportAndAsksForNothingElse) {
  const std::string page = to_page(report(), nullptr);
  EXPECT_EQ(data_of(page)["report"], report());
  EXPECT_FALSE(data_of(page).contains("events"));
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, Not(HasSubstr(" src=")));
}

TEST(Page, NoTextOfARunEndsItsDataOrIsReadAsMarkup) {
  const SmallRun run;
  const Json data = data_of(to_page(report(), &run.history));
  EXPECT_THAT(data["texts"].dump(), HasSubstr("kill rank 1 </script>"));
}

TEST(Page, SlicesLieInTheOrderOfThePhasesUpToWhenTheyWereTold) {
  const SmallRun run;
  const Json data = data_of(to_page(report(), &run.history));
  const int forward = static_cast<int>(Phase::forward);
  const int backward = static_cast<int>(Phase::backward);
  EXPECT_EQ(data["slices"], Json({{1, 0, forward, 20, 30}, {1, 0, backward, 50, 50}, {2, 0, forward, 360, 40}}));
  EXPECT_EQ(data["phases"][forward], "forward");
}

TEST(Page, ATensorIsShownWithTheFirstStepThatIsNotTheGoldens) {
  const SmallRun run;
  const Json data = data_of(to_page(report(), &run.history));
  EXPECT_EQ(data["tensors"], Json::parse(R"([["layers.0.bias", 2], ["layers.0.weight", -1]])"));
}

TEST(Page, AttemptsHaveABeginningAnEndAndAReason) {
  const SmallRun run;
  const Json data = data_of(to_page(report(), &run.history));
  EXPECT_EQ(data["attempts"], Json::parse(R"([[1, 0, 230, "rank 1 died"], [2, 240, 500, "the job finished"]])"));
}

TEST(Page, MessagesAddUpByPairAndWhatWasSentByRankGroupAndOperation) {
  const SmallRun run;
  const Json data = data_of(to_page(report(), &run.history));
  EXPECT_EQ(data["messages"], Json::parse("[[1, 0, 2]]"));
  EXPECT_EQ(data["sent"], Json::parse(R"([[0, "dp all_reduce", 640, 7, 3]])"));
}

TEST(Page, EventsThatOnlyCountAreLeftOutAndStillCounted) {
  const SmallRun run;
  const Json data = data_of(to_page(report(), &run.history));
  EXPECT_EQ(data["total"], run.history.size());
  EXPECT_THAT(data["kinds"].dump(), HasSubstr("fault_fired"));
  EXPECT_THAT(data["kinds"].dump(), Not(HasSubstr("time_spent")));
}

TEST(Page, AHistoryThatEndsBeforeTheRunIsCalledThat) {
  SmallRun run;
  EXPECT_EQ(data_of(to_page(report(), &run.history))["ends_early"], false);
  History cut(run.tables);
  for (std::size_t i = 0; i + 1 < run.history.size(); ++i) cut.append(run.history[i]);
  EXPECT_EQ(data_of(to_page(report(), &cut))["ends_early"], true);
}

}  // namespace
}  // namespace firedrill
