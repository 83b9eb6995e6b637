#include "engine/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/train/scaler.h"

namespace firedrill {
namespace {

TEST(Schedule, CosineIsThatOfTheMathLibrary) {
  for (int i = 0; i <= 1000; ++i) {
    const double x = i / 1000.0;
    EXPECT_NEAR(cosine_of_half_turns(x), std::cos(x * 3.14159265358979323846), 1e-15) << x;
  }
  EXPECT_EQ(cosine_of_half_turns(0), 1.0);
  EXPECT_EQ(cosine_of_half_turns(1), -1.0);
}

TEST(Schedule, WarmsUpThenFallsToTheLeastRate) {
  const OptimizerSpec spec{.lr = 0.4, .warmup_steps = 4, .decay = Decay::cosine, .lr_min_ratio = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(spec, 12, 1), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 12, 4), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 12, 8), 0.22);  // half way: the mean of 0.4 and 0.04
  EXPECT_DOUBLE_EQ(learning_rate(spec, 12, 12), 0.04);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 12, 13), 0.04);
  for (int step = 5; step <= 12; ++step) EXPECT_LT(learning_rate(spec, 12, step), learning_rate(spec, 12, step - 1));
}

TEST(Schedule, ConstantStaysAfterTheWarmUp) {
  const OptimizerSpec spec{.lr = 0.4, .warmup_steps = 2, .decay = Decay::constant};
  EXPECT_DOUBLE_EQ(learning_rate(spec, 5, 1), 0.2);
  for (int step = 2; step <= 5; ++step) EXPECT_EQ(learning_rate(spec, 5, step), 0.4);
}

TEST(Schedule, AWarmUpAsLongAsTheRunNeverDividesByZero) {
  const OptimizerSpec spec{.lr = 0.4, .warmup_steps = 5, .decay = Decay::cosine};
  EXPECT_EQ(learning_rate(spec, 5, 5), 0.4);
  EXPECT_TRUE(std::isfinite(learning_rate(spec, 5, 6)));
}

TEST(Scaler, IsOneForEverWithoutDynamicScaling) {
  const ScalerState start = initial_scaler({.dynamic = false, .initial_scale = 1024});
  EXPECT_EQ(start, (ScalerState{.scale = 1, .growth_tracker = 0}));
  EXPECT_EQ(scaler_after_step({.dynamic = false}, start, true), start);
}

TEST(Scaler, BacksOffAtAnOverflowAndGrowsAfterEnoughGoodSteps) {
  const ScalerSpec spec{.dynamic = true, .initial_scale = 1024, .growth = 2, .backoff = 0.5, .growth_interval = 3};
  ScalerState s = initial_scaler(spec);
  EXPECT_EQ(s.scale, 1024);
  s = scaler_after_step(spec, s, false);
  s = scaler_after_step(spec, s, false);
  EXPECT_EQ(s, (ScalerState{1024, 2}));
  s = scaler_after_step(spec, s, true);
  EXPECT_EQ(s, (ScalerState{512, 0}));
  for (int i = 0; i < 3; ++i) s = scaler_after_step(spec, s, false);
  EXPECT_EQ(s, (ScalerState{1024, 0}));
}

TEST(Scaler, NeverBecomesZeroOrInfinite) {
  const ScalerSpec spec{.dynamic = true, .initial_scale = 1, .growth_interval = 1};
  ScalerState s = initial_scaler(spec);
  for (int i = 0; i < 400; ++i) s = scaler_after_step(spec, s, true);
  EXPECT_GT(s.scale, 0);
  for (int i = 0; i < 400; ++i) s = scaler_after_step(spec, s, false);
  EXPECT_TRUE(std::isfinite(s.scale));
  EXPECT_GT(s.scale, 1e38F);
}

}  // namespace
}  // namespace firedrill
