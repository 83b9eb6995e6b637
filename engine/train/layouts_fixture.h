// For tests. The fixture of layout tests: a small job with something to learn, and the comparison of what a layout of
// it ends with.
#pragma once

#include "engine/model/numerics.h"
#include "engine/train/test_layouts.h"

namespace firedrill {

inline Job small_job(const Lanes& lanes) {
  Job job;
  job.model = {.layers = 2, .width = 24, .heads = 4, .hidden = 40, .sequence = 16, .dropout = 0.1};
  job.lanes = lanes;
  job.batch = {.lane_micro_batch = 2, .accumulation = 2};
  job.optimizer = {.lr = 0.003, .warmup_steps = 2, .decay = Decay::cosine, .weight_decay = 0.1, .clip = 1.0};
  job.steps = 4;
  return job;
}

class Layouts : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }

  CrewResult train(const Job& job, const Layout& layout) { return firedrill::train(job, layout, text_); }
  void expect_same(const Job& job, const Layout& layout, const CrewResult& golden) {
    firedrill::expect_same(train(job, layout), golden, layout);
  }

  Value text_ = text_to_learn();
};

}  // namespace firedrill
