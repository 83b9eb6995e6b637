// The tensor kernels on the CPU as the device, against the host's own kernels: the same functions up to rounding, and
// whole steps of training that stay close.
#include "engine/train/device/tensor_compute.h"

#include <gtest/gtest.h>

#include <ATen/Context.h>

#include <cmath>
#include <set>
#include <string>

#include "engine/base/rng.h"
#include "engine/model/numerics.h"
#include "engine/model/transformer.h"
#include "engine/train/grad_norm.h"
#include "engine/train/optimizer.h"

namespace firedrill {
namespace {

template <class T>
T get(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(describe(result.error()));
  return *std::move(result);
}

Value noise(const Shape& shape, std::uint64_t stream, float amplitude) {
  MutableValue out(DType::f32, shape);
  Rng rng(stream);
  for (float& x : out.as<float>()) {
    x = (static_cast<float>(rng.below(1 << 20)) / static_cast<float>(1 << 19) - 1.0F) * amplitude;
  }
  return std::move(out).freeze();
}

// The largest difference, measured against the largest number.
double distance(const Value& a, const Value& b) {
  const auto x = a.as<float>();
  const auto y = b.as<float>();
  EXPECT_EQ(x.size(), y.size());
  float largest = 1e-20F;
  float difference = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::abs(x[i]));
    difference = std::max(difference, std::abs(x[i] - y[i]));
  }
  return static_cast<double>(difference / largest);
}

constexpr double tolerance = 2e-5;

constexpr Kernel packs_kernel = make_kernel(
    "test.packs", KernelKind::other,
    [](std::span<const std::byte>, std::span<Value> inputs) -> Result<Value> { return std::move(inputs[0]); });

class OnTensors : public testing::TestWithParam<double> {
 protected:
  OnTensors() {
    pin_numerics();
    pin_device_numerics(at::kCPU);
    job_.model = {.layers = 1, .width = 36, .heads = 3, .hidden = 50, .sequence = 11, .dropout = GetParam()};
    model_ = std::make_unique<Model>(job_);
  }

  Value parameters(std::size_t segment) { return get(model_->initial_parameters(host_, segment, 5)); }
  static Value squares(std::uint64_t stream) {
    MutableValue out(noise(Shape{256}, stream, 0.1F));
    for (float& x : out.as<float>()) x *= x;
    return std::move(out).freeze();
  }
  Value tokens() {
    MutableValue out(DType::u8, Shape{3, 12});
    for (std::size_t i = 0; i < out.bytes().size(); ++i) out.bytes()[i] = static_cast<std::byte>(i * 37 % 251);
    return std::move(out).freeze();
  }
  Value mask() { return Value::copy_of(DType::u8, Shape{3}, std::as_bytes(std::span("\1\0\1", 3))); }

  Job job_;
  std::unique_ptr<Model> model_;
  DirectCompute host_;
  TensorCompute device_{at::kCPU, host_};
  RandomCounter random_{.key = 7, .counter = 3};
};

TEST_P(OnTensors, SegmentsAndTheirGradientsAreThoseOfTheHost) {
  for (std::size_t segment = 0; segment < model_->head(); ++segment) {
    const Value p = parameters(segment);
    const Value in = segment == 0 ? tokens() : noise(Shape{3, 11, 36}, segment, 1.0F);
    const Value out = get(model_->forward(host_, segment, p, in, random_));
    EXPECT_LT(distance(out, get(model_->forward(device_, segment, p, in, random_))), tolerance) << segment;
    const Value d_out = noise(Shape{3, 11, 36}, segment + 10, 1.0F);
    const SegmentGradients ours = get(model_->backward(host_, segment, p, in, random_, d_out));
    const SegmentGradients theirs = get(model_->backward(device_, segment, p, in, random_, d_out));
    EXPECT_LT(distance(ours.parameters, theirs.parameters), tolerance) << segment;
    if (segment > 0) {
      EXPECT_LT(distance(ours.input, theirs.input), tolerance) << segment;
    }
  }
  EXPECT_EQ(device_.runs_on_host(), 0);
}

TEST_P(OnTensors, HeadCountsPresentRowsOnly) {
  const Value p = parameters(model_->head());
  const Value in = noise(Shape{3, 11, 36}, 1, 1.0F);
  for (const Value& row_mask : {mask(), Value()}) {
    const Targets targets{.tokens = tokens(), .row_mask = row_mask};
    const Value loss = get(model_->loss(host_, p, in, targets));
    EXPECT_LT(distance(loss, get(model_->loss(device_, p, in, targets))), tolerance);
    const SegmentGradients ours = get(model_->loss_backward(host_, p, in, targets, 0.125F));
    const SegmentGradients theirs = get(model_->loss_backward(device_, p, in, targets, 0.125F));
    EXPECT_LT(distance(ours.parameters, theirs.parameters), tolerance);
    EXPECT_LT(distance(ours.input, theirs.input), tolerance);
  }
  EXPECT_EQ(device_.runs_on_host(), 0);
}

TEST_P(OnTensors, NormsHaveTheHostsBits) {
  const Value gradients = noise(Shape{64 * 11}, 4, 3.0F);
  EXPECT_TRUE(get(sum_of_squares(host_, gradients)).same_as(get(sum_of_squares(device_, gradients))));
  const Value grains = get(sums_of_grains(device_, gradients));
  EXPECT_TRUE(get(sums_of_grains(host_, gradients)).same_as(grains));
  EXPECT_TRUE(get(sum_over_grains(host_, grains)).same_as(get(sum_over_grains(device_, grains))));
}

TEST_P(OnTensors, OptimizerIsThatOfTheHostAndTheSameInAnyRunOfASegment) {
  const Value ranges = Value::copy_of(std::vector<std::int64_t>{70, 200});
  const OptimizerSpec spec{.weight_decay = 0.1};
  const AdamWStep step{.lr = 0.01, .step = 3, .gradient_scale = 0.5};
  const OptimizerState whole = {
      .parameters = noise(Shape{256}, 1, 1.0F), .exp_avg = noise(Shape{256}, 2, 0.1F), .exp_avg_sq = squares(3)};
  const Value gradients = noise(Shape{256}, 9, 1.0F);
  const OptimizerState of_host = get(adamw_update(host_, spec, step, whole, gradients, ranges));
  const OptimizerState there = get(adamw_update(device_, spec, step, whole, gradients, ranges));
  EXPECT_LT(distance(of_host.parameters, there.parameters), 1e-6);
  EXPECT_TRUE(of_host.exp_avg.same_as(there.exp_avg));
  EXPECT_TRUE(of_host.exp_avg_sq.same_as(there.exp_avg_sq));
  for (const std::int64_t offset : {0, 64, 128}) {
    const auto run = [offset](const Value& value) { return value.slice(offset, 128); };
    const OptimizerState part = get(adamw_update(
        device_, spec, step,
        {.parameters = run(whole.parameters), .exp_avg = run(whole.exp_avg), .exp_avg_sq = run(whole.exp_avg_sq)},
        run(gradients), ranges, offset));
    EXPECT_TRUE(part.parameters.same_as(run(there.parameters))) << offset;
  }
  EXPECT_EQ(device_.runs_on_host(), 0);
}

TEST_P(OnTensors, WhatHasNoTensorFormRunsOnTheHost) {
  const Value pack = Value::pack({noise(Shape{4}, 1, 1.0F)});
  std::vector<Value> copies = {pack};
  EXPECT_TRUE(get(device_.run(packs_kernel, {}, std::span(copies))).same_as(pack));
  EXPECT_EQ(device_.runs_on_host(), 1);
  EXPECT_EQ(device_.runs_on_device(), 0);
}

INSTANTIATE_TEST_SUITE_P(Dropout, OnTensors, testing::Values(0.0, 0.25));

}  // namespace
}  // namespace firedrill
