#include "engine/model/transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/rng.h"
#include "engine/model/arithmetic.h"
#include "engine/model/numerics.h"
#include "engine/seam/collectives.h"

namespace firedrill {
namespace {

template <class T>
T get(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(describe(result.error()));
  return *std::move(result);
}

class Transformer : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }

  Job job_{.model = {.layers = 2, .width = 20, .heads = 2, .sequence = 8, .dropout = 0.1}};
  DirectCompute compute_;
};

TEST_F(Transformer, TensorsLieAtWholeGrainsWithoutOverlap) {
  const Model model(job_);
  std::int64_t total = 0;
  for (const Segment& segment : model.segments()) {
    std::int64_t end = 0;
    for (const TensorSpec& tensor : segment.tensors) {
      EXPECT_EQ(tensor.offset % grain, 0) << tensor.name;
      EXPECT_GE(tensor.offset, end) << tensor.name;
      EXPECT_LT(tensor.offset - end, grain) << tensor.name;
      EXPECT_EQ(tensor.name.rfind(segment.name + ".", 0), 0U) << tensor.name;
      EXPECT_EQ(tensor.decay, tensor.shape.rank() == 2) << tensor.name;
      end = tensor.offset + tensor.count();
    }
    EXPECT_EQ(segment.count % grain, 0);
    EXPECT_LT(segment.count - end, grain);
    total += segment.parameter_count();
  }
  EXPECT_EQ(model.segments().size(), 6U);
  EXPECT_EQ(model.segments()[model.head()].name, "head");
  // embed; per layer norm, qkv, out, norm, gate_up, down; head. hidden is 56.
  EXPECT_EQ(total, 256 * 20 + 8 * 20 + 2 * (40 + 4 * 400 + 40 + 3 * 56 * 20) + 40 + 256 * 20);
  EXPECT_EQ(model.parameter_count(), total);
}

TEST_F(Transformer, DecayRangesCoverExactlyTheMatrices) {
  const Model model(job_);
  const Segment& mlp = model.segments()[2];
  const auto ranges = mlp.decay_ranges.as<std::int64_t>();
  ASSERT_EQ(ranges.size(), 4U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ranges[2 * i], mlp.tensors[2 + i].offset);
    EXPECT_EQ(ranges[2 * i + 1], mlp.tensors[2 + i].offset + mlp.tensors[2 + i].count());
  }
}

TEST_F(Transformer, InitialParametersAreFrozen) {
  const Model model(job_);
  DigestBuilder digest;
  for (const Segment& s : model.segments()) digest.add(get(model.initial_parameters(compute_, s.index, 42)).digest());
  // Every golden depends on these bits: a change here re-records all of them.
  EXPECT_EQ(digest.finish().hex(), "cd52d207b7430dbe725def8f7236079c");
  EXPECT_FALSE(get(model.initial_parameters(compute_, 1, 42)).same_as(get(model.initial_parameters(compute_, 1, 43))));
  EXPECT_FALSE(get(model.initial_parameters(compute_, 1, 42)).same_as(get(model.initial_parameters(compute_, 3, 42))));
}

TEST_F(Transformer, InitialParametersHaveTheScaleOfGpt2) {
  const Model model(job_);
  const Segment& mlp = model.segments()[2];
  const Value flat = get(model.initial_parameters(compute_, 2, 42));
  const auto deviation = [&](const TensorSpec& tensor) {
    double sum = 0;
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      const double x = flat.as<float>()[static_cast<std::size_t>(tensor.offset + i)];
      sum += x * x;
    }
    return std::sqrt(sum / static_cast<double>(tensor.count()));
  };
  EXPECT_EQ(deviation(mlp.tensors[0]), 1.0);  // norm weight
  EXPECT_EQ(deviation(mlp.tensors[1]), 0.0);  // norm bias
  EXPECT_NEAR(deviation(mlp.tensors[2]), 0.02, 0.001);
  EXPECT_NEAR(deviation(mlp.tensors[3]), 0.01, 0.001);  // to the residual, two layers: 0.02 / sqrt(4)
}

TEST_F(Transformer, TheFirstLossIsThatOfGuessing) {
  const Model model(job_);
  MutableValue tokens(DType::u8, Shape{4, 9});
  std::uint64_t counter = 0;
  for (std::uint8_t& t : tokens.as<std::uint8_t>()) t = static_cast<std::uint8_t>(Stream(1, 2).below(256, counter++));
  const Value batch = std::move(tokens).freeze();
  Value x = batch;
  for (std::size_t i = 0; i < model.head(); ++i) {
    x = get(model.forward(compute_, i, get(model.initial_parameters(compute_, i, 1)), x, std::nullopt));
  }
  const Value parameters = get(model.initial_parameters(compute_, model.head(), 1));
  const float loss = get(model.loss(compute_, parameters, x, {batch, {}})).as<float>()[0] / 32;
  EXPECT_NEAR(loss, std::log(256.0), 0.05);
}

TEST(Arithmetic, ExponentialIsThatOfTheMathLibraryToSingleRounding) {
  double worst = 0;
  for (int i = -8700; i <= 8800; ++i) {
    const float x = static_cast<float>(i) * 0.01F;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(portable_exp(Four{} + x)[1]) - exact) / exact);
  }
  EXPECT_LT(worst, 2.5e-7);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(portable_exp(Four{} - infinity)[0], 0.0F);
  EXPECT_EQ(portable_exp(Four{} - 200.0F)[0], 0.0F);
  EXPECT_EQ(portable_exp(Four{})[0], 1.0F);
  EXPECT_GT(portable_exp(Four{} + infinity)[0], 1e38F);
  EXPECT_TRUE(std::isnan(portable_exp(Four{} + std::numeric_limits<float>::quiet_NaN())[0]));
}

TEST(Arithmetic, LogarithmIsThatOfTheMathLibrary) {
  for (double x = 1e-3; x < 1e6; x *= 1.0137)
    EXPECT_NEAR(portable_log(x), std::log(x), 2e-14 + std::abs(std::log(x)) * 2e-15);
  EXPECT_TRUE(std::isnan(portable_log(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Arithmetic, ANumberThatIsNotOneSpreadsThroughSoftmax) {
  for (std::size_t at = 0; at < 7; ++at) {
    std::vector<float> x(7, 0.5F);
    x[at] = std::numeric_limits<float>::quiet_NaN();
    softmax_in_place(x.data(), 7, 1.0F);
    for (const float y : x) EXPECT_TRUE(std::isnan(y)) << at;
  }
}

TEST(Numerics, ThePinsReallyHold) {
  pin_numerics();
  // Set by setenv at the top of a test: LibTorch had done no work, so the variable counts.
  EXPECT_EQ(cpu_capability(), "DEFAULT");
  EXPECT_STREQ(std::getenv("MKL_CBWR"), "COMPATIBLE");
}

TEST(Numerics, TheProbeIsRepeatableAndNamedInTheKey) {
  pin_numerics();
  const Digest probe = numerics_probe();
  EXPECT_EQ(probe, numerics_probe());
  EXPECT_EQ(numerics_key(Numerics::pinned), "libtorch-2.11.0/cpu/" + probe.hex());
  EXPECT_EQ(numerics_key(Numerics::native), "libtorch-2.11.0/cpu/" + probe.hex() + "/native");
}

}  // namespace
}  // namespace firedrill
