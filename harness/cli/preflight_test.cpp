// What pre-flight refuses before it starts anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/test_answer.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

Answer preflight_with(std::vector<std::string> more, const std::string& directory = "build/preflight-refused") {
  std::vector<std::string> arguments = {"preflight", "scenarios/jobs/nano.yaml", "--dir", directory};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return firedrill(arguments);
}

TEST(PreflightVerb, options_that_change_nothing_are_refused) {
  for (const std::vector<std::string>& unused : std::vector<std::vector<std::string>>{
           {"--seed", "2"}, {"--jobs", "2"}, {"--filter", "disk*"}, {"--load", "1s"}, {"--mutant", "torn_manifest"}}) {
    const Answer answer = preflight_with(unused);
    EXPECT_EQ(answer.code, 1) << unused[0];
    EXPECT_THAT(answer.err, HasSubstr(unused[0]));
  }
}

TEST(PreflightVerb, an_empty_directory_name_is_refused) {
  const Answer answer = preflight_with({}, "");
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("--dir"));
}

}  // namespace
}  // namespace firedrill
