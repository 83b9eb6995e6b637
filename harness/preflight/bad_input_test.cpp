// Directories that cannot be meant are bad input before any check, as a mistyped name is worth no minute's wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "harness/preflight/bench_test.h"
#include "harness/preflight/preflight.h"
#include "harness/preflight/troubles_test.h"

namespace firedrill::preflight {
namespace {

using testing::HasSubstr;

TEST(Restore, a_directory_that_is_not_there_is_bad_input_before_any_check) {
  const Directory directory;
  Options options = options_for(directory.path(), 2);
  options.restore = directory.path() / "typo";
  ::setenv(trouble_variable, "", 1);
  int ended = 0;
  const auto results = run_checks(options, [&](const CheckResult&) { ++ended; });
  EXPECT_TRUE(results.failed_with(Code::invalid_input));
  EXPECT_EQ(ended, 0);
  const CheckResult result = run(check_restore, options);
  EXPECT_EQ(result.standing(), Standing::no_go);
  EXPECT_THAT(worst(result).needed, HasSubstr("can be opened"));
}

TEST(Restore, a_directory_without_shards_is_bad_input_before_any_check) {
  const Directory directory;
  Options options = options_for(directory.path(), 2);
  options.restore = directory.path();
  ::setenv(trouble_variable, "", 1);
  const auto results = run_checks(options, [](const CheckResult&) { ADD_FAILURE() << "a check was run"; });
  ASSERT_TRUE(results.failed_with(Code::invalid_input));
  EXPECT_THAT(results.error().message, HasSubstr("--restore " + directory.path().string() + ": there is no `shards`"));
}

TEST(Preflight, a_file_for_the_directory_is_bad_input_before_any_check) {
  const Directory directory;
  std::ofstream(directory.path() / "file") << "in the way";
  const Options options = options_for(directory.path() / "file", 2);
  ::setenv(trouble_variable, "", 1);
  const auto results = run_checks(options, [](const CheckResult&) { ADD_FAILURE() << "a check was run"; });
  ASSERT_TRUE(results.failed_with(Code::invalid_input));
  EXPECT_THAT(results.error().message, HasSubstr("--dir " + (directory.path() / "file").string()));
}

}  // namespace
}  // namespace firedrill::preflight
