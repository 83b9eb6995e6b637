#include "harness/check/properties.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "harness/check/drill_builder.h"

namespace firedrill {
namespace {

std::vector<Judged> judge_run(DrillBuilder& drill) {
  History history(drill.tables);
  for (const Event& event : drill.events) history.append(event);
  return judge_all(Case(history, drill.plan));
}

TEST(Properties, AGoodRunPassesAllOfThemAndNoneOfItIsVacuousButFaultsAndGuards) {
  DrillBuilder drill(4, 12);
  drill.whole_run();
  const auto judged = judge_run(drill);
  EXPECT_EQ(judged.size(), properties().size());
  for (const Judged& one : judged) {
    EXPECT_EQ(one.verdict.outcome, Outcome::pass) << one.property->name << ": " << one.verdict.evidence;
    const std::set<std::string_view> about_faults_or_guards = {"errors_reach_the_job", "faults_fired",
                                                               "collectives_agree", "failures_are_attributed"};
    EXPECT_EQ(one.verdict.vacuous(), about_faults_or_guards.contains(one.property->name)) << one.property->name;
  }
  EXPECT_EQ(overall(judged), Outcome::pass);
}

TEST(Properties, TheProcessWorldPassesWithOneView) {
  DrillBuilder drill(2, 8);
  drill.plan.world = WorldKind::process;
  drill.whole_run();
  for (const Judged& one : judge_run(drill)) {
    EXPECT_EQ(one.verdict.outcome, Outcome::pass) << one.property->name << ": " << one.verdict.evidence;
    if (one.property->name == "partial_never_discoverable") {
      EXPECT_NE(one.verdict.evidence.find("power_fails: not applicable"), std::string::npos) << one.verdict.evidence;
    }
  }
}

TEST(Properties, AnEmptyHistoryIsVacuous) {
  DrillBuilder drill;
  drill.events.clear();
  for (const Judged& one : judge_run(drill)) {
    EXPECT_TRUE(one.verdict.vacuous()) << one.property->name << ": " << one.verdict.evidence;
    EXPECT_EQ(in_words(one.verdict), "pass (vacuous)");
  }
}

TEST(Properties, AreFoundByName) {
  EXPECT_EQ(find_property("validated_is_kept")->name, "validated_is_kept");
  EXPECT_EQ(find_property("nonsense"), nullptr);
}

TEST(Properties, OneThatThrowsIsUnknown) {
  DrillBuilder drill;
  History history(drill.tables);
  const Case run(history, drill.plan);
  const Property broken{"broken", "", [](const Case&) -> Verdict { throw std::runtime_error("no luck"); }};
  const Verdict verdict = judge(broken, run);
  EXPECT_EQ(verdict.outcome, Outcome::unknown);
  EXPECT_NE(verdict.evidence.find("no luck"), std::string::npos);
}

TEST(Properties, AProbeThatTheTableLacksMakesThemUnknown) {
  DrillBuilder drill;
  drill.whole_run();
  drill.nth(EventKind::probe, 3).a = 1'000'000;
  int unknown = 0;
  for (const Judged& one : judge_run(drill)) unknown += one.verdict.outcome == Outcome::unknown;
  EXPECT_GE(unknown, 2);
}

TEST(Properties, OverallIsTheWorst) {
  const auto with = [](std::initializer_list<Outcome> outcomes) {
    std::vector<Judged> judged;
    for (const Outcome outcome : outcomes) judged.push_back({nullptr, {.outcome = outcome}});
    return overall(judged);
  };
  EXPECT_EQ(with({Outcome::pass, Outcome::unknown, Outcome::fail}), Outcome::fail);
  EXPECT_EQ(with({Outcome::pass, Outcome::unknown}), Outcome::unknown);
  EXPECT_EQ(with({Outcome::pass}), Outcome::pass);
}

TEST(FirstDifference, IsNothingForAGoodRunAndNamesTensorAndStepForABadOne) {
  DrillBuilder drill;
  drill.whole_run();
  const auto difference = [&] {
    History history(drill.tables);
    for (const Event& event : drill.events) history.append(event);
    return first_difference(Case(history, drill.plan));
  };
  EXPECT_FALSE(difference());
  drill.nth(EventKind::step_done, 5).digest = drill.wrong_state(3, 1, "weight.1");
  drill.nth(EventKind::step_done, 9).digest = drill.wrong_state(5, 1, "random.lane.1");
  const auto found = difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tensor, "weight.1");
  EXPECT_EQ(found->step, 3);
  EXPECT_EQ(found->where, "step_done at step 3, rank 1, attempt 1");
}

}  // namespace
}  // namespace firedrill
