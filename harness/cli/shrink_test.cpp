// firedrill shrink: from the folder of a run that failed to a scenario that a person reads, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/cli/test_answer.h"
#include "harness/cli/test_folder.h"
#include "harness/plan/plan.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class ShrinkVerb : public FolderTest {};

TEST_F(ShrinkVerb, TheFolderOfAFailedRunGetsAScenarioThatFailsAlike) {
  const std::string mutant = "optimizer_step_reset";
  ASSERT_EQ(firedrill({"run", "scenarios/quickstart.yaml", "--mutant", mutant, "--out", at("run"), "--quiet"}).code, 2);
  const Answer shrunk = firedrill({"shrink", at("run"), "--json", at("shrunk.json")});
  EXPECT_EQ(shrunk.code, 0) << shrunk.err;
  EXPECT_THAT(shrunk.out,
              AllOf(HasSubstr("before: 3 faults (kill, kill, kill), 12 steps, dp=4"),
                    HasSubstr("after:  1 fault (kill)"), HasSubstr("fails resume_equals_golden"),
                    HasSubstr("reproduce: firedrill run " + at("run/shrunk.yaml") + " --mutant " + mutant)));
  EXPECT_THAT(text_of(at("run/shrunk.yaml")),
              AllOf(StartsWith("# Shrunk from quickstart"), HasSubstr("# With the mutant optimizer_step_reset"),
                    HasSubstr("expect: {fail: resume_equals_golden}")));
  const auto json = nlohmann::json::parse(text_of(at("shrunk.json")));
  EXPECT_EQ(json["before"]["faults"], 3);
  EXPECT_EQ(json["after"]["faults"], 1);
  EXPECT_EQ(json["property"], "resume_equals_golden");
  EXPECT_TRUE(json["complete"]);
  EXPECT_EQ(firedrill({"run", at("run/shrunk.yaml"), "--mutant", mutant}).code, 2);
  EXPECT_EQ(firedrill({"shrink", at("run"), "--out", at("aside"), "--quiet"}).code, 0);
  EXPECT_EQ(text_of(at("aside/shrunk.yaml")), text_of(at("run/shrunk.yaml")));
}

TEST_F(ShrinkVerb, WhatDoesNotFailIsRefused) {
  ASSERT_EQ(firedrill({"run", "scenarios/quickstart.yaml", "--out", at("run"), "--quiet"}).code, 0);
  const Answer passing = firedrill({"shrink", at("run")});
  EXPECT_EQ(passing.code, 1);
  EXPECT_THAT(passing.err, HasSubstr("does not fail: there is nothing to shrink"));
  EXPECT_FALSE(fs::exists(at("run/shrunk.yaml")));
  const Answer misspelt = firedrill({"shrink", at("run"), "--property", "resume"});
  EXPECT_EQ(misspelt.code, 1);
  EXPECT_THAT(misspelt.err, HasSubstr("--property resume: there is no such property"));
  EXPECT_EQ(firedrill({"shrink", at("absent")}).code, 1);
}

TEST_F(ShrinkVerb, ManyRealProcessesAreRefusedWithARemedy) {
  ASSERT_EQ(firedrill({"run", "scenarios/quickstart.yaml", "--mutant", "optimizer_step_reset", "--out", at("run"),
                       "--set", "job.lanes.dp=16", "--set", "layout.dp=16", "--quiet"})
                .code,
            2);
  Result<Plan> plan = read_plan(at("run/plan.json"));
  ASSERT_TRUE(plan);
  plan->world = WorldKind::process;
  ASSERT_TRUE(write_plan(*plan, at("large.plan.json")));
  const Answer large = firedrill({"shrink", at("large.plan.json")});
  EXPECT_EQ(large.code, 1);
  EXPECT_THAT(large.err, AllOf(HasSubstr("16 real ranks"), HasSubstr("--world sim")));
}

}  // namespace
}  // namespace firedrill
