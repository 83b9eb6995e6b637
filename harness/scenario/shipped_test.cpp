// The scenarios and jobs of the tree, as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/scenario/scenario.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(FIREDRILL_SOURCE_DIR) / folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Shipped, EveryJobParsesAndPrintsRoundTrip) {
  const auto files = files_below("scenarios/jobs");
  EXPECT_GE(files.size(), 3U);
  for (const fs::path& file : files) {
    const LoadOptions options{.planned_only = file.parent_path().filename() == "shapes"};
    const auto job = load_job(file, options);
    ASSERT_THAT(job.mistakes, testing::ElementsAre());
    const auto again = parse_job(print(*job.value, file.parent_path()), file, options);
    ASSERT_THAT(again.mistakes, testing::ElementsAre());
    EXPECT_EQ(digest_of_job(*again.value), digest_of_job(*job.value)) << file;
  }
}

TEST(Shipped, EveryScenarioParsesAndPrintsRoundTrip) {
  int scenarios = 0;
  for (const fs::path& file : files_below("scenarios")) {
    if (!is_scenario_file(file)) continue;
    ++scenarios;
    const auto scenario = load_scenario(file);
    ASSERT_THAT(scenario.mistakes, testing::ElementsAre());
    EXPECT_EQ(scenario.value->expect.kind == Expectation::Kind::refuse, !scenario.value->refusals.empty()) << file;
    const std::string printed = print(*scenario.value, file.parent_path());
    const auto again = parse_scenario(printed, file);
    ASSERT_THAT(again.mistakes, testing::ElementsAre()) << printed;
    EXPECT_EQ(print(*again.value, file.parent_path()), printed);
  }
  EXPECT_GE(scenarios, 13);
}

}  // namespace
}  // namespace firedrill
