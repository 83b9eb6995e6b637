// Each segment's written-out backward against LibTorch's autograd of the plain model, and what a segment promises
// besides: pure, masked rows count for nothing, padding stays zero.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/model/numerics.h"
#include "engine/model/reference_model.h"
#include "engine/model/test_tensors.h"

namespace firedrill {
namespace {

class Segments : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }

  // Odd sizes on purpose: tails behind runs of four, padding behind tensors.
  explicit Segments(double dropout = 0.0) {
    job_.model = {.layers = 1, .width = 36, .heads = 3, .hidden = 50, .sequence = 11, .dropout = dropout};
    model_ = std::make_unique<Model>(job_);
    for (const Segment& segment : model_->segments()) {
      Value flat = get(model_->initial_parameters(compute_, segment.index, 5));
      MutableValue parameters(noise(Shape{segment.count}, segment.index, 0.4F));
      for (const TensorSpec& tensor : segment.tensors) {  // noise on the tensors, zero between them
        const auto begin = static_cast<std::size_t>(tensor.offset + tensor.count());
        const auto end = std::min<std::size_t>((begin + 63) / 64 * 64, parameters.as<float>().size());
        std::fill(parameters.as<float>().begin() + begin, parameters.as<float>().begin() + end, 0.0F);
      }
      parameters_.push_back(std::move(parameters).freeze());
    }
    tokens_ = random_tokens(rows, job_.model.sequence + 1);
    reference_ = std::make_unique<ReferenceModel>(job_, *model_, parameters_);
  }

  const Segment& segment(std::size_t i) const { return model_->segments()[i]; }
  Shape activations() const { return {rows, job_.model.sequence, job_.model.width}; }

  at::Tensor torch_tokens(const Value& tokens) const {
    return at::from_blob(const_cast<std::byte*>(tokens.bytes().data()), {rows, job_.model.sequence + 1}, at::kByte);
  }

  // What the segment's dropout multiplies by, read off a forward of ones through Dropout itself.
  void give_mask(std::size_t i, const RandomCounter& random) {
    SegmentScalars scalars;
    scalars.key = random.key + (i + 1) * 0x9E3779B97F4A7C15ULL;
    scalars.counter = random.counter;
    scalars.drop_threshold = static_cast<std::uint32_t>(job_.model.dropout * 65536 + 0.5);
    scalars.keep_scale_bits = std::bit_cast<std::uint32_t>(static_cast<float>(1 / (1 - job_.model.dropout)));
    at::Tensor mask = at::ones({rows, job_.model.sequence, job_.model.width});
    Dropout(scalars).apply(floats_of(mask), floats_of(mask));
    reference_->masks[segment(i).name] = mask;
  }

  void expect_parameter_gradients(std::size_t i, const Value& flat) {
    for (const TensorSpec& tensor : segment(i).tensors) {
      const auto ours =
          flat.as<float>().subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.count()));
      EXPECT_LT(relative_distance(ours, reference_->tensor(tensor.name).grad()), tolerance) << tensor.name;
    }
    expect_zero_padding(i, flat);
  }

  void expect_zero_padding(std::size_t i, const Value& flat) {
    std::vector<bool> inside(flat.as<float>().size(), false);
    for (const TensorSpec& tensor : segment(i).tensors) {
      for (std::int64_t k = 0; k < tensor.count(); ++k) inside[static_cast<std::size_t>(tensor.offset + k)] = true;
    }
    for (std::size_t k = 0; k < inside.size(); ++k) {
      ASSERT_TRUE(inside[k] || flat.as<float>()[k] == 0.0F) << segment(i).name << " element " << k;
    }
  }

  // Forward, then backward of a random gradient, ours against the plain model's.
  void compare_inner(std::size_t i, const std::optional<RandomCounter>& random) {
    const Value input = noise(activations(), 50, 1.5F);
    const Value gradient = noise(activations(), 51, 1.0F);
    if (random && segment(i).has_dropout) give_mask(i, *random);
    const at::AutoGradMode record(true);
    at::Tensor x = tensor_of(input).set_requires_grad(true);
    at::Tensor out;
    if (segment(i).kind == SegmentKind::embed) out = reference_->embed(torch_tokens(tokens_));
    if (segment(i).kind == SegmentKind::attention) out = reference_->attention(0, x);
    if (segment(i).kind == SegmentKind::mlp) out = reference_->mlp(0, x);
    out.backward(tensor_of(gradient));

    const Value& in = segment(i).kind == SegmentKind::embed ? tokens_ : input;
    const Value ours = get(model_->forward(compute_, i, parameters_[i], in, random));
    EXPECT_EQ(ours.shape(), activations());
    EXPECT_LT(relative_distance(ours.as<float>(), out), tolerance);
    const SegmentGradients g = get(model_->backward(compute_, i, parameters_[i], in, random, gradient));
    expect_parameter_gradients(i, g.parameters);
    if (segment(i).kind == SegmentKind::embed) {
      EXPECT_FALSE(g.input);
    } else {
      EXPECT_LT(relative_distance(g.input.as<float>(), x.grad()), tolerance);
    }
  }

  static constexpr std::int64_t rows = 3;
  Job job_;
  DirectCompute compute_;
  std::unique_ptr<Model> model_;
  std::vector<Value> parameters_;
  Value tokens_;
  std::unique_ptr<ReferenceModel> reference_;
};

class SegmentsWithDropout : public Segments {
 protected:
  SegmentsWithDropout() : Segments(0.25) {}
};

TEST_F(Segments, EmbedBackwardIsThatOfAutograd) { compare_inner(0, std::nullopt); }
TEST_F(Segments, AttentionBackwardIsThatOfAutograd) { compare_inner(1, std::nullopt); }
TEST_F(Segments, MlpBackwardIsThatOfAutograd) { compare_inner(2, std::nullopt); }
TEST_F(SegmentsWithDropout, EmbedBackwardIsThatOfAutogradUnderTheSameMask) { compare_inner(0, RandomCounter{7, 4}); }
TEST_F(SegmentsWithDropout, AttentionBackwardIsThatOfAutogradUnderTheSameMask) {
  compare_inner(1, RandomCounter{7, 4});
}
TEST_F(SegmentsWithDropout, MlpBackwardIsThatOfAutogradUnderTheSameMask) { compare_inner(2, RandomCounter{7, 4}); }
TEST_F(SegmentsWithDropout, NothingIsDroppedWithoutARandomCounter) { compare_inner(1, std::nullopt); }

TEST_F(Segments, HeadLossAndBackwardAreThoseOfAutogradWithAMaskedRow) {
  const std::size_t head = model_->head();
  const std::uint8_t mask[] = {1, 0, 1};
  const Targets targets{.tokens = tokens_,
                        .row_mask = Value::copy_of(DType::u8, Shape{rows}, std::as_bytes(std::span(mask)))};
  const Value input = noise(activations(), 60, 1.0F);
  const at::AutoGradMode record(true);
  at::Tensor x = tensor_of(input).set_requires_grad(true);
  const at::Tensor row_mask = at::tensor(std::vector<float>{1, 0, 1});
  const at::Tensor loss = reference_->loss(x, torch_tokens(tokens_), row_mask);
  (loss * 0.03125).backward();

  const Value ours = get(model_->loss(compute_, parameters_[head], input, targets));
  EXPECT_NEAR(ours.as<float>()[0], loss.item<float>(), 1e-5 * loss.item<float>());
  const SegmentGradients g = get(model_->loss_backward(compute_, parameters_[head], input, targets, 0.03125F));
  expect_parameter_gradients(head, g.parameters);
  EXPECT_LT(relative_distance(g.input.as<float>(), x.grad()), tolerance);
}

TEST_F(Segments, AMaskedRowCountsForExactlyNothing) {
  const std::size_t head = model_->head();
  const std::uint8_t mask[] = {1, 1, 0};
  const Value row_mask = Value::copy_of(DType::u8, Shape{rows}, std::as_bytes(std::span(mask)));
  const Value input = noise(activations(), 60, 1.0F);
  const auto row_size = static_cast<std::size_t>(input.count() / rows);
  MutableValue other(input);
  for (float& x : other.as<float>().subspan(2 * row_size)) x = 0.75F - x;
  const Value changed = std::move(other).freeze();
  MutableValue other_tokens(tokens_);
  for (std::uint8_t& token : other_tokens.as<std::uint8_t>().subspan(2 * tokens_.size() / 3)) token ^= 0x55;
  const Value changed_tokens = std::move(other_tokens).freeze();

  const Value loss = get(model_->loss(compute_, parameters_[head], input, {tokens_, row_mask}));
  const Value changed_loss = get(model_->loss(compute_, parameters_[head], changed, {changed_tokens, row_mask}));
  EXPECT_TRUE(loss.same_as(changed_loss));
  const auto g = get(model_->loss_backward(compute_, parameters_[head], input, {tokens_, row_mask}, 0.125F));
  const auto changed_g =
      get(model_->loss_backward(compute_, parameters_[head], changed, {changed_tokens, row_mask}, 0.125F));
  EXPECT_TRUE(g.parameters.same_as(changed_g.parameters));
  for (const float x : g.input.as<float>().subspan(2 * row_size)) ASSERT_EQ(x, 0.0F);
  const auto unmasked = get(model_->loss_backward(compute_, parameters_[head], input, {tokens_, {}}, 0.125F));
  EXPECT_FALSE(g.parameters.same_as(unmasked.parameters));
}

TEST_F(SegmentsWithDropout, TheSameInputsGiveTheSameBitsAndAnotherCounterOthers) {
  const Value input = noise(activations(), 50, 1.5F);
  const Value once = get(model_->forward(compute_, 1, parameters_[1], input, RandomCounter{7, 4}));
  const Value again = get(model_->forward(compute_, 1, parameters_[1], input, RandomCounter{7, 4}));
  const Value later = get(model_->forward(compute_, 1, parameters_[1], input, RandomCounter{7, 5}));
  const Value other_lane = get(model_->forward(compute_, 1, parameters_[1], input, RandomCounter{8, 4}));
  EXPECT_TRUE(once.same_as(again));
  EXPECT_FALSE(once.same_as(later));
  EXPECT_FALSE(once.same_as(other_lane));
}

TEST_F(SegmentsWithDropout, DropsTheShareItIsAskedFor) {
  SegmentScalars scalars{.key = 17, .counter = 3, .drop_threshold = 16384};
  scalars.keep_scale_bits = std::bit_cast<std::uint32_t>(static_cast<float>(1 / 0.75));
  std::vector<float> ones(100'000, 1.0F);
  Dropout(scalars).apply(ones, ones);
  const auto dropped = std::count(ones.begin(), ones.end(), 0.0F);
  EXPECT_NEAR(static_cast<double>(dropped) / 100'000, 0.25, 0.006);  // 4 standard deviations
  EXPECT_EQ(std::count(ones.begin(), ones.end(), static_cast<float>(1 / 0.75)) + dropped, 100'000);
}

// Eight 16-bit numbers of every Philox block decide over eight elements, in the order dropout.cpp gives.
TEST(DropoutMask, IsDrawnFromPhilox) {
  constexpr std::uint32_t threshold = 30'000;
  SegmentScalars scalars{.key = 0x123456789ABCDEFULL, .counter = 0xFEDCBA9876543210ULL, .drop_threshold = threshold};
  scalars.keep_scale_bits = std::bit_cast<std::uint32_t>(2.0F);
  std::vector<float> mask(3 * 256 + 5, 1.0F);
  Dropout(scalars).apply(mask, mask);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const std::size_t half = i % 256 / 32;
    const auto words = philox(scalars.key, scalars.counter, i / 256 * 32 + i % 32);
    const std::uint32_t number = half % 2 == 1 ? words[half / 2] >> 16 : words[half / 2] & 0xFFFF;
    ASSERT_EQ(mask[i], number < threshold ? 0.0F : 2.0F) << i;
  }
}

}  // namespace
}  // namespace firedrill
