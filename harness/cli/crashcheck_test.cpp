// What `firedrill crashcheck` says, and with which exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/model/numerics.h"
#include "harness/cli/command_line.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

const std::string scenario = "scenarios/storage/one_publish.yaml";

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

Answer crashcheck(std::vector<std::string> arguments) {
  pin_numerics();
  std::ostringstream out;
  std::ostringstream err;
  arguments.insert(arguments.begin(), {"crashcheck", scenario, "--set", "layout.dp=2", "--json", "-"});
  const int code = run_command_line(arguments, {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

TEST(CrashcheckVerb, TheJsonOfAFailureSaysWhatFailedAndHowToSeeItAgain) {
  const Answer answer = crashcheck({"--profile", "posix", "--mutant", "protocol_unsynced_files"});
  ASSERT_EQ(answer.code, 2) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_FALSE(json["complete"]);
  EXPECT_THAT(std::string(json["reproduce"]), HasSubstr("--mutant protocol_unsynced_files --set 'layout.dp=2'"));
  EXPECT_FALSE(json.contains("violation"));
  const auto violation = json["profiles"].at(0)["violation"];
  EXPECT_THAT(answer.err, HasSubstr("violation: " + std::string(violation["message"])));
  EXPECT_GT(violation["seconds"], 0.0);
  ASSERT_FALSE(violation["operations"].empty());
  for (const auto& operation : violation["operations"]) {
    EXPECT_THAT(answer.err, HasSubstr(std::string(operation["what"])));
    EXPECT_NE(operation["state"], "");
  }
  ASSERT_FALSE(violation["reads"].empty());
  EXPECT_THAT(answer.err, HasSubstr(std::string(violation["reads"].at(0))));
}

TEST(CrashcheckVerb, ATimeThatIsNoneIsRefusedWithTheRange) {
  for (const char* time : {"nan", "inf", "1e300", "0", "-1", "soon"}) {
    const Answer answer = crashcheck({"--time", time});
    EXPECT_EQ(answer.code, 1) << time;
    EXPECT_THAT(answer.err, HasSubstr("0.001 to 1000000")) << time;
  }
}

TEST(CrashcheckVerb, TheJsonOfAPassHasNoViolation) {
  const Answer answer = crashcheck({"--profile", "nfs", "--engine", "lazy"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_TRUE(json["complete"]);
  EXPECT_FALSE(json["profiles"].at(0).contains("violation"));
  EXPECT_FALSE(json.contains("reproduce"));
}

TEST(CrashcheckVerb, AScenarioThatExpectsAnythingButAPassIsRefused) {
  for (const std::string expect : {"liveness", "{fail: one_provenance}", "refuse"}) {
    const Answer answer = crashcheck({"--profile", "nfs", "--set", "expect=" + expect});
    EXPECT_EQ(answer.code, 1) << expect;
    EXPECT_THAT(answer.err, HasSubstr("crashcheck")) << expect;
    EXPECT_THAT(answer.err, HasSubstr("expect")) << expect;
  }
}

TEST(CrashcheckVerb, AKeptTraceIsNamedInTheReproduceLineAndRefusedForAnotherRun) {
  const std::string trace = testing::TempDir() + "crashcheck_verb.trace";
  std::filesystem::remove(trace);
  const Answer failed = crashcheck({"--trace", trace, "--profile", "posix", "--mutant", "protocol_unsynced_files"});
  EXPECT_EQ(failed.code, 2) << failed.err;
  EXPECT_THAT(failed.err, HasSubstr("--trace " + trace + " --mutant protocol_unsynced_files"));
  const Answer other = crashcheck({"--trace", trace, "--profile", "posix", "--engine", "lazy"});
  EXPECT_EQ(other.code, 1) << other.err;
  EXPECT_THAT(other.err, HasSubstr("the trace is that of another run"));
  std::filesystem::remove(trace);
  const Answer kills = crashcheck({"--trace", trace, "--set", "crash.kill_everywhere=true"});
  EXPECT_EQ(kills.code, 1);
  EXPECT_THAT(kills.err, HasSubstr("crash.kill_everywhere"));
  EXPECT_FALSE(std::filesystem::exists(trace));
}

}  // namespace
}  // namespace firedrill
