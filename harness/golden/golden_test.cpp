#include "harness/golden/golden.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace firedrill {
namespace {

Golden small_golden() {
  Golden golden{.job = "nano",
                .key = {.job = digest_of("job"), .corpus = digest_of("corpus"), .numerics = "probe"},
                .tensors = {"a", "b"},
                .steps = {}};
  for (int step = 1; step <= 3; ++step) {
    GoldenStep at;
    at.tensors = {digest_of(fmt::format("{}", step)), digest_of(fmt::format("b{}", step))};
    at.state = digest_of_tensors(golden.tensors, at.tensors);
    at.samples = {{.epoch = 0, .sample = step, .lane = 1}};
    golden.steps.push_back(at);
  }
  return golden;
}

class GoldenFile : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 fmt::format("golden-{}", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path file() const { return directory_ / "golden.json"; }

 private:
  std::filesystem::path directory_;
};

TEST_F(GoldenFile, ReadsBackWhatWasWritten) {
  const Golden golden = small_golden();
  ASSERT_TRUE(write_golden(golden, file()));
  const Result<Golden> read = read_golden(file());
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(read->key, golden.key);
  EXPECT_FALSE(difference(golden, *read));
  EXPECT_EQ(read->steps[1].samples, golden.steps[1].samples);
}

TEST_F(GoldenFile, RefusesAFileWhoseDigestsDoNotFit) {
  ASSERT_TRUE(write_golden(small_golden(), file()));
  std::ifstream in(file());
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string hex = digest_of("b2").hex();
  const std::size_t at = text.find(hex);
  ASSERT_NE(at, std::string::npos);
  text[at] = text[at] == '0' ? '1' : '0';
  std::ofstream(file()) << text;
  EXPECT_TRUE(read_golden(file()).failed_with(Code::corrupted));
  std::ofstream(file()) << text.substr(0, text.size() / 2);
  EXPECT_TRUE(read_golden(file()).failed_with(Code::corrupted));
}

TEST(Golden, ADifferenceNamesTheFirstStepAndTensor) {
  const Golden recorded = small_golden();
  Golden computed = recorded;
  computed.steps[2].tensors[0] = digest_of("other");
  computed.steps[1].tensors[1] = digest_of("other");
  for (GoldenStep& step : computed.steps) step.state = digest_of_tensors(computed.tensors, step.tensors);
  const auto found = difference(recorded, computed);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 2);
  EXPECT_EQ(found->tensor, "b");
}

TEST(Golden, ADifferenceSeesSamplesAndMissingSteps) {
  const Golden recorded = small_golden();
  Golden computed = recorded;
  computed.steps[0].samples[0].sample = 7;
  EXPECT_EQ(difference(recorded, computed)->step, 1);
  computed = recorded;
  computed.steps.pop_back();
  EXPECT_EQ(difference(recorded, computed)->step, 3);
}

TEST(Golden, AnotherKeyHasAnotherFileName) {
  GoldenKey key = small_golden().key;
  const std::string name = golden_file_name("nano", key);
  key.numerics = "another probe";
  EXPECT_NE(golden_file_name("nano", key), name);
}

}  // namespace
}  // namespace firedrill
