// What a shrunk plan is written as can be read, says the same plan, and names the job by its file where it can.
#include "harness/explore/shrink/scenario_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/explore/shrink/edits.h"
#include "harness/explore/shrink/test_plans.h"

namespace firedrill {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

namespace fs = std::filesystem;

class ScenarioTexts : public testing::Test {
 protected:
  ScenarioTexts() {
    std::string name = (fs::temp_directory_path() / "firedrill-shrink-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ScenarioTexts() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(ScenarioTexts, AJobIsNamedByItsFileWithWhatDiffersFromIt) {
  const Plan plan = varied_plan();
  const fs::path file = folder_ / "shrunk.yaml";
  const auto jobs = job_files_of(plan, "scenarios/jobs");
  const Result<ScenarioText> written = scenario_text(plan, file, jobs, "One line.\nAnother.");
  ASSERT_TRUE(written) << describe(written.error());
  EXPECT_THAT(written->job_text, IsEmpty());
  EXPECT_THAT(written->text, AllOf(StartsWith("# One line.\n# Another.\nschema: firedrill.scenario/1\njob: "),
                                   HasSubstr("scenarios/jobs/nano.yaml"), HasSubstr("job.model.dropout"),
                                   HasSubstr("job.optimizer.clip"), HasSubstr("job.cluster.file_sync: 4ms"),
                                   Not(HasSubstr("job.optimizer.lr"))));
  EXPECT_TRUE(write_scenario(plan, file, jobs, ""));
  EXPECT_FALSE(fs::exists(folder_ / "shrunk.job.yaml"));
}

TEST_F(ScenarioTexts, AJobWithoutAFileIsWrittenBesideTheScenario) {
  Plan plan = varied_plan();
  plan.job.name = "elsewhere";
  const fs::path file = folder_ / "shrunk.yaml";
  const Status written = write_scenario(plan, file, {}, "");
  ASSERT_TRUE(written) << describe(written.error());
  EXPECT_TRUE(fs::exists(folder_ / "shrunk.job.yaml"));
  const Loaded<Scenario> read = load_scenario(file);
  ASSERT_TRUE(read) << read.mistakes.front();
  EXPECT_EQ(digest_of_job(read.value->job), digest_of_job(plan.job));
  EXPECT_EQ(read.value->faults.size(), plan.faults.size());
}

TEST_F(ScenarioTexts, AFolderThatCannotBeWrittenIsAnErrorThatNamesIt) {
  const Status written = write_scenario(nano_plan(), folder_ / "absent" / "shrunk.yaml", {}, "");
  ASSERT_FALSE(written);
  EXPECT_THAT(describe(written.error()), HasSubstr("absent/shrunk"));
}

TEST_F(ScenarioTexts, DrawnPlansReadBackAsTheyWere) {
  int read_back = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Plan plan = drawn_plan(seed);
    if (!mistakes_in(plan).empty()) continue;  // a drawn place that no rank ever comes to
    for (FaultSpec& fault : plan.faults) fault.may_not_fire = true;
    plan.expect = {.kind = Expectation::Kind::fail, .property = "validated_is_kept"};
    const Status written = write_scenario(plan, folder_ / "shrunk.yaml", job_files_of(plan, "scenarios/jobs"), "");
    ASSERT_TRUE(written) << "seed " << seed << ": " << describe(written.error());
    ++read_back;
  }
  EXPECT_GT(read_back, 20);
}

}  // namespace
}  // namespace firedrill
