// What a scenario says of a run that goes on under another layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/scenario.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> mistakes(const std::string& layouts, const std::string& at) {
  const std::string text = "schema: firedrill.scenario/1\njob: jobs/nano-hybrid.yaml\n" + layouts +
                           "\nfaults:\n  - {kill: {}, at: {rank: 1, step: 3}}\n  - {kill: {}, at: " + at + "}\n";
  return parse_scenario(text, "scenarios/elastic.yaml").mistakes;
}

TEST(Elastic, FaultsAreHeldAgainstTheLayoutOfTheirAttempt) {
  const std::string growing = "layout: {dp: 2}\nrecovery: {budget: 3, layout: {dp: 4, tp: 2}}";
  EXPECT_THAT(mistakes(growing, "{attempt: 2, rank: 6, step: 5}"), IsEmpty());
  EXPECT_THAT(mistakes(growing, "{attempt: any, rank: 6, step: 5}"), IsEmpty());
  EXPECT_THAT(mistakes(growing, "{attempt: 1, rank: 6, step: 5}"),
              ElementsAre(HasSubstr("at.rank is 6: layout dp=2 has ranks 0 to 1")));
  const std::string shrinking = "layout: {dp: 4}\nrecovery: {budget: 3, layout: {dp: 2}}";
  EXPECT_THAT(mistakes(shrinking, "{attempt: 2, rank: 3, step: 5}"),
              ElementsAre(HasSubstr("at.rank is 3: layout dp=2 has ranks 0 to 1")));
}

TEST(Elastic, MoreRanksThanCanBeRunAreRefused) {
  const Loaded<Scenario> loaded =
      parse_scenario("schema: firedrill.scenario/1\njob: jobs/nano.yaml\nlayout: {dp: 4}\n", "scenarios/many.yaml",
                     {.set = {"job.lanes.dp=4096", "job.lanes.tp=2", "job.lanes.cp=2", "layout.dp=4096", "layout.tp=2",
                              "layout.cp=2"}});
  EXPECT_THAT(loaded.mistakes, ElementsAre(HasSubstr("layout has 16384 ranks: at most 8192 are run at once")));
}

}  // namespace
}  // namespace firedrill
