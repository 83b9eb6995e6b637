// The jobs that the engine's tests know by value are the files.
#include "engine/train/shipped_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/scenario/scenario.h"

namespace firedrill {
namespace {

TEST(ShippedJobFiles, SayWhatTheEnginesTestsHold) {
  for (const Job& job : shipped_jobs()) {
    Loaded<Job> file = load_job("scenarios/jobs/" + job.name + ".yaml");
    ASSERT_TRUE(file) << file.mistakes.front();
    const std::vector<JobField> ours = bit_fields(job);
    const std::vector<JobField> theirs = bit_fields(*file);
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].value, theirs[i].value) << job.name << ": " << ours[i].name;
    }
  }
}

TEST(ShippedJobFiles, AreAllAmongThem) {
  std::vector<std::string> known;
  for (const Job& job : shipped_jobs()) known.push_back(job.name + ".yaml");
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios/jobs")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(known, testing::UnorderedElementsAreArray(files));
}

}  // namespace
}  // namespace firedrill
