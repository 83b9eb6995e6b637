#include "harness/scenario/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string scenario_with(const std::string& line) {
  return "schema: firedrill.scenario/1\njob: jobs/nano.yaml\n" + line + "\n";
}
const std::filesystem::path file = "scenarios/weights.yaml";  // where the text would stand

TEST(Weights, AreReadForExplorationsWhileARunTakesNoNoticeOfThem) {
  const std::string text = scenario_with("explore: {weights: {kill: 5, nan: 0}}");
  EXPECT_THAT(parse_scenario(text, file).mistakes, IsEmpty());
  EXPECT_THAT(parse_weights(text, file), ElementsAre(KindWeight{FaultKind::kill, 5}, KindWeight{FaultKind::nan, 0}));
  EXPECT_THAT(parse_weights(scenario_with("seed: 3"), file), IsEmpty());
}

TEST(Weights, OfAnUnknownKindAreRefusedWithTheNearestName) {
  const Loaded<Scenario> loaded = parse_scenario(scenario_with("explore: {weights: {kil: 5}}"), file);
  EXPECT_THAT(loaded.mistakes, ElementsAre(HasSubstr("did you mean `kill`?")));
}

}  // namespace
}  // namespace firedrill
