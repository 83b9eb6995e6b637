// Every shipped job computes the right thing, not only the same thing everywhere: fifty steps of it follow plain
// training with LibTorch, in its own shape and on its own text.
#include "engine/train/shipped_jobs.h"

#include <gtest/gtest.h>

#include "engine/data/corpus.h"
#include "engine/model/numerics.h"
#include "engine/train/plain_training.h"

namespace firedrill {
namespace {

// Sixteen bits: as argued in layouts_test.cpp.
Closeness closeness_for(const Job& job) {
  if (job.precision.parameters == Precision::fp32) return {};
  return {.loss = 0.01, .parameters = 0.001};
}

class ShippedJobs : public testing::TestWithParam<Job> {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }
};

TEST_P(ShippedJobs, FollowPlainTrainingForFiftySteps) {
  const Job job = GetParam();
  const Result<Corpus> corpus = load_corpus(job.data.corpus);
  ASSERT_TRUE(corpus) << describe(corpus.error());
  expect_plain_training(job, split_corpus(*corpus, job.data.held_out).training, 50, closeness_for(job));
}

INSTANTIATE_TEST_SUITE_P(Jobs, ShippedJobs, testing::ValuesIn(shipped_jobs()), [](const auto& tested) {
  std::string name = tested.param.name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace firedrill
