#include "faults/interposer/nccl_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace firedrill::interposer {
namespace {

using testing::HasSubstr;

std::string with(const std::string& fault) { return R"({"schema": "firedrill.plan/1", "faults": [)" + fault + "]}"; }

NcclFault read(const std::string& fault) {
  auto plan = nccl_plan_from_json(with(fault), "plan.json");
  EXPECT_TRUE(plan.ok()) << describe(plan.error());
  return plan ? plan->faults.at(0) : NcclFault{};
}

std::string refusal(const std::string& text) {
  const auto plan = nccl_plan_from_json(text, "plan.json");
  EXPECT_FALSE(plan.ok()) << text;
  return plan ? "" : describe(plan.error());
}

TEST(NcclPlan, ReadsEveryKindWithItsOptions) {
  EXPECT_EQ(read(R"({"delay": {"delay": "50ms"}, "at": {"rank": 1}})").delay, std::chrono::milliseconds(50));
  EXPECT_EQ(read(R"({"skip": {}, "at": {"rank": 1}})").kind, Kind::skip);
  EXPECT_EQ(read(R"({"reorder": {}, "at": {"rank": 1}})").hold, std::chrono::seconds(1));
  EXPECT_EQ(read(R"({"reorder": {"hold": "20ms"}, "at": {"rank": 1}})").hold, std::chrono::milliseconds(20));
  EXPECT_EQ(read(R"({"wrong_count": {"count": 3}, "at": {"rank": 1}})").count, 3U);
  EXPECT_EQ(read(R"({"wrong_count": {}, "at": {"rank": 1}})").count, std::nullopt);
  EXPECT_EQ(read(R"({"kill": {}, "at": {"rank": 1, "when": "after"}})").at.after, true);
  EXPECT_EQ(read(R"({"hang": {}, "at": {"rank": 1}})").kind, Kind::hang);
  EXPECT_EQ(read(R"({"stall": {}, "at": {"rank": 1}})").kind, Kind::stall);
}

TEST(NcclPlan, ReadsWhereAFaultIs) {
  const NcclFault fault = read(
      R"({"skip": {}, "at": {"rank": 3, "nth": 7, "op": "all_gather", "comm": 2, "attempt": "any"}, "times": 0,
          "may_not_fire": true})");
  EXPECT_EQ(describe(fault), "skip rank 3 at all_gather 7 of communicator 2, in any attempt, without end");
  EXPECT_TRUE(fault.may_not_fire);
  EXPECT_TRUE(matches(fault.at, Op::all_gather, 3, 2));
  EXPECT_FALSE(matches(fault.at, Op::all_gather, 2, 2));
  EXPECT_FALSE(matches(fault.at, Op::all_gather, 3, 1));
  EXPECT_FALSE(matches(fault.at, Op::all_reduce, 3, 2));
}

TEST(NcclPlan, CollectiveIsAnyCollectiveAndNoOperationIsAny) {
  const CallPattern collective = read(R"({"skip": {}, "at": {"rank": 0, "op": "collective"}})").at;
  EXPECT_TRUE(matches(collective, Op::scatter, 0, 1));
  EXPECT_FALSE(matches(collective, Op::send, 0, 1));
  EXPECT_TRUE(matches(read(R"({"skip": {}, "at": {"rank": 0}})").at, Op::send, 0, 1));
}

TEST(NcclPlan, PassesOverWhatIsTheWorlds) {
  const auto plan =
      nccl_plan_from_json(R"({"schema": "firedrill.plan/1", "job": {"x": 1}, "faults": [], "seed": 3})", "p");
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->faults.empty());
}

TEST(NcclPlan, AnotherTextHasAnotherDigest) {
  EXPECT_NE(nccl_plan_from_json(with(""), "p")->digest, nccl_plan_from_json(with(" "), "p")->digest);
}

struct Bad {
  std::string text;
  std::string place;
  std::string remedy;
};
const std::vector<Bad>& bad_plans() {
  static const std::vector<Bad> list = {
      {"{", "plan.json", "parse error"},
      {"[]", "plan.json: the file", "a mapping is expected"},
      {R"({"faults": []})", "plan.json: schema", "\"firedrill.plan/1\" is expected"},
      {R"({"schema": "firedrill.plan/1"})", "plan.json: the file", "`faults` is missing"},
      {R"({"schema": "firedrill.plan/1", "faults": [], "faults": []})", "plan.json", "stands twice"},
      {with("3"), "faults[0]", "a mapping is expected"},
      {with(R"({"at": {"rank": 1}})"), "faults[0]", "exactly one kind, this one 0"},
      {with(R"({"kill": {}, "hang": {}, "at": {"rank": 1}})"), "faults[0]", "exactly one kind, this one 2"},
      {with(R"({"torn_write": {}, "at": {"rank": 1}})"), "faults[0]", "cannot do `torn_write`: give one of delay"},
      {with(R"({"skp": {}, "at": {"rank": 1}})"), "faults[0]", "did you mean `skip`?"},
      {with(R"({"kill": {}})"), "faults[0]", "`at` is missing"},
      {with(R"({"kill": {}, "at": {}})"), "faults[0].at", "`rank` is missing"},
      {with(R"({"kill": {"now": 1}, "at": {"rank": 1}})"), "faults[0].kill", "remove it"},
      {with(R"({"kill": {}, "at": {"rank": -1}})"), "faults[0].at.rank", "a whole number from 0"},
      {with(R"({"kill": {}, "at": {"rank": 1, "nth": 0}})"), "faults[0].at.nth", "a whole number from 1"},
      {with(R"({"kill": {}, "at": {"rank": 1, "nht": 2}})"), "faults[0].at", "did you mean `nth`?"},
      {with(R"({"kill": {}, "at": {"rank": 1, "op": "allreduce"}})"), "faults[0].at.op", "all_reduce"},
      {with(R"({"kill": {}, "at": {"rank": 1, "step": 3}})"), "faults[0].at.step", "name the call by op and nth"},
      {with(R"({"kill": {}, "at": {"rank": 1, "attempt": "all"}})"), "faults[0].at.attempt", "\"any\""},
      {with(R"({"kill": {}, "at": {"rank": 1, "when": "later"}})"), "faults[0].at.when", "`before` or `after`"},
      {with(R"({"skip": {}, "at": {"rank": 1, "when": "after"}})"), "faults[0].at.when", "remove `when`"},
      {with(R"({"kill": {}, "at": {"rank": 1}, "times": -1})"), "faults[0].times", "a whole number from 0"},
      {with(R"({"kill": {}, "at": {"rank": 1}, "may_not_fire": 1})"), "faults[0].may_not_fire", "true or false"},
      {with(R"({"delay": {}, "at": {"rank": 1}})"), "faults[0].delay", "`delay` is missing"},
      {with(R"({"delay": {"delay": 5}, "at": {"rank": 1}})"), "faults[0].delay.delay", "with its unit"},
      {with(R"({"delay": {"delay": "0s"}, "at": {"rank": 1}})"), "faults[0].delay.delay", "above 0"},
      {with(R"({"wrong_count": {"count": -2}, "at": {"rank": 1}})"), "faults[0].wrong_count.count", "whole number"},
  };
  return list;
}

TEST(NcclPlan, RefusesWhatCannotTakeEffectWithPlaceAndRemedy) {
  for (const Bad& bad : bad_plans()) {
    const std::string message = refusal(bad.text);
    EXPECT_THAT(message, HasSubstr("plan.json")) << bad.text;
    EXPECT_THAT(message, HasSubstr(bad.place)) << bad.text;
    EXPECT_THAT(message, HasSubstr(bad.remedy)) << bad.text;
  }
}

TEST(NcclPlan, RefusesMoreFaultsThanARingHolds) {
  std::string faults = R"({"kill": {}, "at": {"rank": 1}})";
  std::string many = faults;
  for (int i = 1; i < fault_slot_count; ++i) many += "," + faults;
  EXPECT_TRUE(nccl_plan_from_json(with(many), "plan.json").ok());
  EXPECT_THAT(refusal(with(many + "," + faults)), HasSubstr("65 faults; at most 64"));
}

TEST(NcclPlan, TheExampleOfTheReadmeIsAPlan) {
  std::ifstream stream("faults/interposer/README.md");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t begin = text.find("```json");
  ASSERT_NE(begin, std::string::npos);
  const auto plan = nccl_plan_from_json(text.substr(begin + 7, text.find("```", begin + 7) - begin - 7), "README.md");
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_EQ(plan->faults.size(), 6U);
}

TEST(NcclPlan, NamesAFileThatIsNotThere) {
  const auto plan = read_nccl_plan("/nowhere/plan.json");
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(describe(plan.error()), HasSubstr("cannot read the plan /nowhere/plan.json: No such file"));
}

}  // namespace
}  // namespace firedrill::interposer
