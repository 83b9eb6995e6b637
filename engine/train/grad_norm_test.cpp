#include "engine/train/grad_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/base/rng.h"
#include "engine/seam/collectives.h"

namespace firedrill {
namespace {

Value sum_of(const std::vector<float>& gradients) {
  DirectCompute compute;
  Result<Value> sum = sum_of_squares(compute, Value::copy_of(std::span<const float>(gradients)));
  if (!sum) throw std::runtime_error(describe(sum.error()));
  return *std::move(sum);
}

std::vector<float> noise(std::int64_t grains) {
  std::vector<float> out(static_cast<std::size_t>(grains * grain));
  std::uint64_t counter = 0;
  for (float& x : out) x = static_cast<float>(Stream(4, 4).below(2001, counter++)) * 1e-3F - 1.0F;
  return out;
}

TEST(GradNorm, IsThePlainNormToRounding) {
  for (const std::int64_t grains : {1, 2, 3, 5, 8, 21, 1000}) {
    const std::vector<float> gradients = noise(grains);
    double plain = 0;
    for (const float x : gradients) plain += static_cast<double>(x) * static_cast<double>(x);
    EXPECT_NEAR(sum_of(gradients).as<float>()[0], plain, 1e-6 * plain) << grains;
  }
  EXPECT_EQ(sum_of({}).as<float>()[0], 0.0F);
}

// A shard that holds an aligned subtree of grains may add it first: the bits are those of the whole.
TEST(GradNorm, TheTreeOverGrainsIsFixed) {
  const std::vector<float> whole = noise(8);
  const auto part = [&](std::size_t begin, std::size_t end) {
    return sum_of({whole.begin() + static_cast<std::ptrdiff_t>(begin * grain),
                   whole.begin() + static_cast<std::ptrdiff_t>(end * grain)})
        .as<float>()[0];
  };
  EXPECT_EQ(part(0, 8), part(0, 4) + part(4, 8));
  EXPECT_EQ(part(0, 7), part(0, 4) + (part(4, 6) + part(6, 7)));
  EXPECT_EQ(part(0, 2), part(0, 1) + part(1, 2));
}

TEST(GradNorm, OneNumberThatIsNotFiniteIsAnOverflow) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {0U, 63U, 64U, 191U}) {
      std::vector<float> gradients = noise(3);
      gradients[at] = bad;
      const Value sums[] = {sum_of(noise(2)), sum_of(gradients)};
      const GradientDecision decision = decide_gradients(gradient_norm(sums), 1024, 1.0);
      EXPECT_TRUE(decision.overflow) << bad << " at " << at;
    }
  }
  const Value sums[] = {sum_of(noise(2)), sum_of(noise(3))};
  EXPECT_FALSE(decide_gradients(gradient_norm(sums), 1024, 1.0).overflow);
}

TEST(GradNorm, ClipsWhatIsTooLongAndDividesTheLossScaleOut) {
  const GradientDecision within = decide_gradients(512, 1024, 1.0);
  EXPECT_EQ(within.norm, 0.5);
  EXPECT_EQ(within.gradient_scale, 1.0 / 1024);
  const GradientDecision beyond = decide_gradients(4096, 1024, 1.0);
  EXPECT_EQ(beyond.norm, 4.0);
  EXPECT_NEAR(beyond.gradient_scale * 4096, 1.0, 1e-6);
  EXPECT_EQ(decide_gradients(4096, 1024, 0).gradient_scale, 1.0 / 1024);  // 0 is off
}

}  // namespace
}  // namespace firedrill
