#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/audit/audit.h"

namespace firedrill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

AuditedTensor tensor(std::string name, std::uint64_t digest, std::vector<std::int64_t> shape = {4}) {
  return {.name = std::move(name), .dtype = "f32", .shape = std::move(shape), .digest = {.high = digest, .low = 0}};
}

AuditedCheckpoint checkpoint(const CheckpointId& id, std::vector<AuditedTensor> tensors) {
  CheckpointContents contents;
  contents.intact = true;
  contents.tensors = std::move(tensors);
  return {.id = id,
          .committed = true,
          .visible = true,
          .contents = std::make_shared<const CheckpointContents>(std::move(contents))};
}

TEST(Compare, NamesTheTensorsThatDiffer) {
  const auto a = checkpoint({2, 1, 1}, {tensor("a", 1), tensor("b", 2), tensor("c", 3), tensor("d", 4)});
  const auto b = checkpoint({2, 1, 1}, {tensor("a", 1), tensor("b", 9), tensor("c", 3, {2, 2}), tensor("e", 5)});
  EXPECT_TRUE(compare(*a.contents, *a.contents).empty());
  std::vector<std::string> found;
  for (const TensorDifference& difference : compare(*a.contents, *b.contents)) {
    found.push_back(difference.tensor + ": " + difference.how);
  }
  EXPECT_THAT(found, ElementsAre("b: digest 00000000000000020000000000000000 and 00000000000000090000000000000000",
                                 "c: f32 [4] and f32 [2, 2]", "d: only in the first", "e: only in the second"));
}

TEST(Compare, SetsTheNewestWholeCheckpointsOfEachStepSideBySide) {
  AuditReport a;
  a.checkpoints = {checkpoint({2, 1, 1}, {tensor("w", 1)}), checkpoint({4, 1, 1}, {tensor("w", 7)}),
                   checkpoint({4, 2, 1}, {tensor("w", 2)}), checkpoint({6, 2, 1}, {tensor("w", 3)})};
  AuditReport b;
  b.checkpoints = {checkpoint({4, 1, 1}, {tensor("w", 2)}), checkpoint({6, 1, 1}, {tensor("w", 9)}),
                   checkpoint({8, 1, 1}, {tensor("w", 4)})};
  const DirectoryComparison comparison = compare(a, b);
  ASSERT_EQ(comparison.steps.size(), 2U);
  EXPECT_EQ(comparison.steps[0].a, (CheckpointId{4, 2, 1}));
  EXPECT_TRUE(comparison.steps[0].differences.empty());
  EXPECT_EQ(comparison.steps[1].differences.size(), 1U);
  EXPECT_THAT(comparison.only_in_a, ElementsAre(2));
  EXPECT_THAT(comparison.only_in_b, ElementsAre(8));
  EXPECT_FALSE(comparison.equal());
  EXPECT_THAT(in_words(comparison), HasSubstr("step 4: 4-2-1 and 4-1-1 are equal\n"));
  EXPECT_THAT(in_words(comparison), HasSubstr("step 6: 6-2-1 and 6-1-1 differ in 1 tensors\n"));
}

TEST(Compare, IsEqualOnlyIfThereIsSomethingToCompare) {
  AuditReport report;
  EXPECT_FALSE(compare(report, report).equal());
  EXPECT_THAT(in_words(compare(report, report)), HasSubstr("no step is whole in both"));
  report.checkpoints = {checkpoint({2, 1, 1}, {tensor("w", 1)})};
  EXPECT_TRUE(compare(report, report).equal());
  report.checkpoints[0].rejected = true;
  EXPECT_FALSE(compare(report, report).equal());
}

}  // namespace
}  // namespace firedrill
