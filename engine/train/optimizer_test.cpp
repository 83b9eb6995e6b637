// AdamW: against LibTorch's, and the bits it promises at any offset, in place or not.
#include "engine/train/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "engine/base/rng.h"
#include "engine/model/numerics.h"
#include "engine/model/tensor_view.h"

namespace firedrill {
namespace {

template <class T>
T get(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(describe(result.error()));
  return *std::move(result);
}

Value noise(std::int64_t count, std::uint64_t stream, float amplitude) {
  MutableValue out(DType::f32, Shape{count});
  std::uint64_t counter = 0;
  for (float& x : out.as<float>()) {
    const auto word = static_cast<std::int32_t>(static_cast<std::uint32_t>(Stream(3, stream).at(counter++)));
    x = static_cast<float>(word) * (amplitude / 2147483648.0F);
  }
  return std::move(out).freeze();
}

Value positive_noise(std::int64_t count, std::uint64_t stream, float amplitude) {
  MutableValue out(noise(count, stream, amplitude));
  for (float& x : out.as<float>()) x = std::abs(x);
  return std::move(out).freeze();
}

class AdamW : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }

  static constexpr std::int64_t count = 1000;
  const OptimizerSpec spec_{.lr = 0.01, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8};
  const std::int64_t ranges_[4] = {128, 301, 512, 999};
  const Value decay_ = Value::copy_of(std::span<const std::int64_t>(ranges_));
  DirectCompute compute_;

  OptimizerState state() const {
    return {noise(count, 1, 1.0F), noise(count, 2, 0.01F), positive_noise(count, 3, 1e-4F)};
  }
};

TEST_F(AdamW, FiftyStepsAreThoseOfLibTorch) {
  const at::AutoGradMode record(true);
  const Value start = noise(count, 1, 1.0F);
  // Two groups in LibTorch: what decays, and what does not.
  at::Tensor whole = tensor_view(start.as<float>(), {count}).clone();
  std::vector<at::Tensor> decayed;
  std::vector<at::Tensor> plain;
  std::vector<std::pair<at::Tensor, std::pair<std::int64_t, std::int64_t>>> all;
  const std::int64_t cuts[] = {0, 128, 301, 512, 999, 1000};
  for (int i = 0; i < 5; ++i) {
    at::Tensor part = whole.slice(0, cuts[i], cuts[i + 1]).clone().set_requires_grad(true);
    (i % 2 == 1 ? decayed : plain).push_back(part);
    all.push_back({part, {cuts[i], cuts[i + 1]}});
  }
  const auto options = [&](double decay) {
    return torch::optim::AdamWOptions(spec_.lr)
        .betas({spec_.beta1, spec_.beta2})
        .eps(spec_.epsilon)
        .weight_decay(decay);
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(decayed, std::make_unique<torch::optim::AdamWOptions>(options(spec_.weight_decay)));
  groups.emplace_back(plain, std::make_unique<torch::optim::AdamWOptions>(options(0)));
  torch::optim::AdamW reference(groups, options(0));

  OptimizerState ours{start, zeros_like(start), zeros_like(start)};
  for (int step = 1; step <= 50; ++step) {
    const Value gradients = noise(count, 100 + static_cast<std::uint64_t>(step), 0.5F);
    const at::Tensor whole_gradient = tensor_view(gradients.as<float>(), {count});
    for (auto& [part, range] : all) part.mutable_grad() = whole_gradient.slice(0, range.first, range.second) * 0.25;
    reference.step();
    ours = get(adamw_update(compute_, spec_, {.lr = spec_.lr, .step = step, .gradient_scale = 0.25}, std::move(ours),
                            gradients, decay_));
    for (auto& [part, range] : all) {
      for (std::int64_t i = range.first; i < range.second; ++i) {
        ASSERT_NEAR(ours.parameters.as<float>()[static_cast<std::size_t>(i)], part[i - range.first].item<float>(), 2e-6)
            << "step " << step << " element " << i;
      }
    }
  }
}

TEST_F(AdamW, ShardsHaveTheBitsOfTheWholeAtAnyOffset) {
  const Value gradients = noise(count, 9, 0.5F);
  const AdamWStep step{.lr = 0.01, .step = 3, .gradient_scale = 0.7};
  const OptimizerState whole = get(adamw_update(compute_, spec_, step, state(), gradients, decay_));
  for (const std::int64_t cut : {1, 2, 3, 64, 127, 128, 129, 301, 640, 997}) {
    const OptimizerState s = state();
    for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, cut}, {cut, count}}) {
      const auto part = [&, b = begin, e = end](const Value& v) { return v.slice(b, e - b); };
      const OptimizerState shard =
          get(adamw_update(compute_, spec_, step, {part(s.parameters), part(s.exp_avg), part(s.exp_avg_sq)},
                           part(gradients), decay_, begin));
      EXPECT_TRUE(shard.parameters.same_as(part(whole.parameters))) << begin << " to " << end;
      EXPECT_TRUE(shard.exp_avg.same_as(part(whole.exp_avg))) << begin << " to " << end;
      EXPECT_TRUE(shard.exp_avg_sq.same_as(part(whole.exp_avg_sq))) << begin << " to " << end;
    }
  }
}

TEST_F(AdamW, UpdatesInPlaceWhatNobodyElseHoldsAndCopiesWhatSomebodyDoes) {
  const Value gradients = noise(count, 9, 0.5F);
  const AdamWStep step{.lr = 0.01, .step = 3, .gradient_scale = 1};
  const OptimizerState kept = state();
  const Digest before = kept.parameters.digest();
  const OptimizerState copied = get(adamw_update(compute_, spec_, step, kept, gradients, decay_));
  EXPECT_EQ(kept.parameters.digest_recomputed(), before);
  EXPECT_NE(copied.parameters.identity(), kept.parameters.identity());

  OptimizerState unique = state();
  const void* buffer = unique.parameters.bytes().data();
  unique = get(adamw_update(compute_, spec_, step, std::move(unique), gradients, decay_));
  EXPECT_EQ(unique.parameters.bytes().data(), buffer);
  EXPECT_TRUE(unique.parameters.unique());
  EXPECT_TRUE(unique.parameters.same_as(copied.parameters));
  EXPECT_TRUE(unique.exp_avg.same_as(copied.exp_avg));
  EXPECT_TRUE(unique.exp_avg_sq.same_as(copied.exp_avg_sq));
}

TEST_F(AdamW, TheStepNumberCountsUntilBiasCorrectionFades) {
  const Value gradients = noise(count, 9, 0.5F);
  const auto at = [&](std::int64_t step) {
    return get(adamw_update(compute_, spec_, {.lr = 0.01, .step = step}, state(), gradients, decay_)).parameters;
  };
  EXPECT_FALSE(at(1).same_as(at(2)));
  EXPECT_FALSE(at(20).same_as(at(21)));
  EXPECT_TRUE(at(100'000).same_as(at(100'001)));
}

TEST_F(AdamW, PaddingStaysZero) {
  const Value zero = zeros_like(noise(64, 1, 1.0F));
  const OptimizerState out =
      get(adamw_update(compute_, spec_, {.lr = 0.01, .step = 1}, {zero, zero, zero}, zero, decay_));
  EXPECT_TRUE(out.parameters.same_as(zero));
  EXPECT_TRUE(out.exp_avg_sq.same_as(zero));
}

}  // namespace
}  // namespace firedrill
