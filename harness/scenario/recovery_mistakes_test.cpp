#include "harness/scenario/recovery_mistakes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> mistakes(const RecoverySpec& recovery, WorldKind world = WorldKind::sim) {
  Scenario scenario;
  scenario.layout = {.dp = 4};
  scenario.world = world;
  scenario.recovery = recovery;
  return mistakes_in_recovery(scenario);
}

TEST(RecoveryMistakes, ASpareNeedsNodesThatCanBeReplaced) {
  const RecoverySpec spare{.policy = RecoveryPolicy::spare, .spares = 1};
  EXPECT_THAT(mistakes(spare), IsEmpty());
  EXPECT_THAT(mistakes(spare, WorldKind::process), ElementsAre(HasSubstr("use `world: sim`")));
  EXPECT_THAT(mistakes({.spares = 1}), ElementsAre(HasSubstr("only `policy: spare` uses them")));
  EXPECT_THAT(mistakes({.policy = RecoveryPolicy::spare, .spares = -1}),
              ElementsAre(HasSubstr("give 0 or more nodes")));
}

TEST(RecoveryMistakes, FewerRanksNeedALayoutOfFewer) {
  EXPECT_THAT(mistakes({.policy = RecoveryPolicy::fewer, .layout = Layout{.dp = 2}}), IsEmpty());
  EXPECT_THAT(mistakes({.policy = RecoveryPolicy::fewer}), ElementsAre(HasSubstr("of fewer ranks than the 4")));
  EXPECT_THAT(mistakes({.policy = RecoveryPolicy::fewer, .layout = Layout{.dp = 4, .zero = 1}}),
              ElementsAre(HasSubstr("of fewer ranks than the 4")));
}

TEST(RecoveryMistakes, NumbersAreChecked) {
  using std::chrono::seconds;
  EXPECT_THAT(mistakes({.budget = -1}), ElementsAre(HasSubstr("recovery.budget is -1")));
  EXPECT_THAT(mistakes({.backoff = {.initial = seconds(2), .max = seconds(1)}}), ElementsAre(HasSubstr("no less")));
  EXPECT_THAT(mistakes({.backoff = {.factor = 0.5}}), ElementsAre(HasSubstr("give 1 or more")));
}

}  // namespace
}  // namespace firedrill
