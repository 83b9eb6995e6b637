// Recording a golden, and the runs of its tensors that ranks with sharded states hold.
#include "harness/golden/record.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace firedrill {
namespace {

Job micro_job() {
  Job job;
  job.name = "micro";
  job.model = {.layers = 1, .width = 8, .heads = 2, .sequence = 8};
  job.lanes = {.dp = 2};
  job.batch = {.lane_micro_batch = 1};
  job.steps = 2;
  return job;
}

struct Recording {
  Job job = micro_job();
  Model model{job};
  Corpus corpus = corpus_from(std::string(500, 'a') + "the end");
  Result<Golden> golden = record_golden(job, model, corpus, "numerics");
};

TEST(Recording, HasEveryStepWithItsSamplesAndIsTheSameTwice) {
  const Recording once;
  const Recording again;
  ASSERT_TRUE(once.golden) << describe(once.golden.error());
  EXPECT_EQ(once.golden->steps.size(), 2U);
  EXPECT_EQ(once.golden->steps[0].samples.size(), 2U);
  EXPECT_FALSE(difference(*once.golden, *again.golden));
  EXPECT_TRUE(once.golden->runs.empty());
}

TEST(Recording, RunsAreOfItsTensorsAndDescribeTheSameSteps) {
  Recording recording;
  Golden golden = *recording.golden;
  const Status added = record_runs(golden, recording.job, recording.model, recording.corpus);
  ASSERT_TRUE(added) << describe(added.error());
  ASSERT_FALSE(golden.runs.empty());
  for (const std::string& run : golden.runs) {
    EXPECT_TRUE(is_run(run));
    EXPECT_TRUE(std::ranges::binary_search(golden.tensors, std::string(tensor_of_run(run)))) << run;
  }
  for (const GoldenStep& step : golden.steps) EXPECT_EQ(step.runs.size(), golden.runs.size());
  EXPECT_FALSE(difference(golden, *recording.golden)) << "runs follow from the tensors: no difference is told by them";
}

TEST(Recording, RunsOfAnotherStateAreRefused) {
  Recording recording;
  Golden golden = *recording.golden;
  for (Digest& tensor : golden.steps[1].tensors) tensor = digest_of("another");
  const Status added = record_runs(golden, recording.job, recording.model, recording.corpus);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, Code::internal);
}

TEST(Recording, AnAppendedGoldenIsDescribedAnewOnceItHasRuns) {
  Recording recording;
  Golden golden = *recording.golden;
  Tables tables;
  History without(tables);
  append_golden(golden, without);
  ASSERT_TRUE(record_runs(golden, recording.job, recording.model, recording.corpus));
  History with(tables);
  append_golden(golden, with);
  const auto state_of = [&](const History& history) {
    return tables.states.find(history[history.of(EventKind::golden).back()].digest);
  };
  EXPECT_EQ(tables.states.tensors(state_of(without)).size(), golden.tensors.size());
  EXPECT_EQ(tables.states.tensors(state_of(with)).size(), golden.tensors.size() + golden.runs.size());
}

}  // namespace
}  // namespace firedrill
