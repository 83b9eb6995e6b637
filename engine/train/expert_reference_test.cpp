// Without dropout, and on a text that can be learned, fifty steps of moe-nano follow the plain mixture of experts all
// the way down.
#include <gtest/gtest.h>

#include "engine/model/numerics.h"
#include "engine/train/plain_training.h"
#include "engine/train/shipped_jobs.h"
#include "engine/train/test_layouts.h"

namespace firedrill {
namespace {

TEST(ExpertReference, FiftyStepsFollowThePlainMixture) {
  pin_numerics();
  const std::vector<Job> jobs = shipped_jobs();
  const auto shipped = std::find_if(jobs.begin(), jobs.end(), [](const Job& job) { return job.name == "moe-nano"; });
  ASSERT_TRUE(shipped != jobs.end());
  Job job = *shipped;
  job.model.dropout = 0;
  job.data.last_batch = LastBatch::drop;
  expect_plain_training(job, text_to_learn(), 50, {.learned = 2.0});
}

}  // namespace
}  // namespace firedrill
