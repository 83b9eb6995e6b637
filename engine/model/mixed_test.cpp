// Segments of 16-bit parameters and activations against the same segments in fp32 (which segments_test.cpp measures
// against autograd), and single products against LibTorch's own rounding.
#include "engine/model/mixed.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/rng.h"
#include "engine/model/lane_model.h"
#include "engine/model/numerics.h"
#include "engine/model/tensor_view.h"

namespace firedrill {
namespace {

template <class T>
T get(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(describe(result.error()));
  return *std::move(result);
}

Value noise(const Shape& shape, std::uint64_t stream, float amplitude) {
  MutableValue out(DType::f32, shape);
  std::uint64_t counter = 0;
  for (float& x : out.as<float>()) {
    const auto word = static_cast<std::int32_t>(static_cast<std::uint32_t>(Stream(4, stream).at(counter++)));
    x = static_cast<float>(word) * (amplitude / 2147483648.0F);
  }
  return std::move(out).freeze();
}

double largest(std::span<const float> x) {
  double max = 0;
  for (const float number : x) max = std::max(max, std::abs(static_cast<double>(number)));
  return max;
}

// The largest difference against the largest number.
double distance(const Value& half, const Value& wide) {
  const Value mine = widened(half);
  std::vector<float> difference;
  for (std::size_t i = 0; i < mine.as<float>().size(); ++i)
    difference.push_back(mine.as<float>()[i] - wide.as<float>()[i]);
  return largest(difference) / largest(wide.as<float>());
}

Job job_of(Precision precision, double dropout) {
  Job job;
  job.model = {.layers = 1, .width = 36, .heads = 3, .hidden = 50, .sequence = 11, .dropout = dropout};
  job.precision.parameters = precision;
  return job;
}

struct Format {
  Precision precision;
  DType dtype;
  double epsilon;  // half a step at 1: what rounding once may cost
};
const Format formats[] = {{Precision::bf16, DType::bf16, 0x1p-9}, {Precision::fp16, DType::f16, 0x1p-12}};

class Mixed : public testing::TestWithParam<std::size_t> {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }
  const Format& format() const { return formats[GetParam()]; }
  DirectCompute compute_;
};

// Between input and result of a segment lie at most six roundings of what products read; each costs `epsilon` of the
// largest number at most, and random signs make them add up to less.
TEST_P(Mixed, SegmentsFollowTheirFp32SelvesForwardAndBackward) {
  const double tolerance = 6 * format().epsilon;
  for (const double dropout : {0.0, 0.2}) {
    const Job narrow_job = job_of(format().precision, dropout);
    const Model narrow(narrow_job);
    const Model wide(job_of(Precision::fp32, dropout));
    const RandomCounter random{.key = 3, .counter = 5};
    for (std::size_t i = 1; i < narrow.segments().size(); ++i) {
      const Segment& segment = narrow.segments()[i];
      const Value parameters = narrowed(noise(Shape{segment.count}, i, 0.4F), format().dtype);
      const Value x = narrowed(noise(Shape{2, 11, 36}, 20, 1.0F), format().dtype);
      SegmentGradients mine;
      SegmentGradients theirs;
      if (i == narrow.head()) {
        const Value tokens = Value::copy_of(std::string(24, 'x')).reinterpret(DType::u8, Shape{2, 12});
        const Targets targets{.tokens = tokens, .row_mask = {}};
        const float loss = get(narrow.loss(compute_, parameters, x, targets)).as<float>()[0];
        const float expected = get(wide.loss(compute_, widened(parameters), widened(x), targets)).as<float>()[0];
        EXPECT_NEAR(loss, expected, tolerance * expected);
        mine = get(narrow.loss_backward(compute_, parameters, x, targets, 0.5F));
        theirs = get(wide.loss_backward(compute_, widened(parameters), widened(x), targets, 0.5F));
      } else {
        const Value y = get(narrow.forward(compute_, i, parameters, x, random));
        EXPECT_EQ(y.dtype(), format().dtype);
        EXPECT_LT(distance(y, get(wide.forward(compute_, i, widened(parameters), widened(x), random))), tolerance);
        const Value dy = narrowed(noise(Shape{2, 11, 36}, 21, 1.0F), format().dtype);
        mine = get(narrow.backward(compute_, i, parameters, x, random, dy));
        theirs = get(wide.backward(compute_, i, widened(parameters), widened(x), random, widened(dy)));
      }
      EXPECT_EQ(mine.input.dtype(), format().dtype);
      EXPECT_EQ(mine.parameters.dtype(), format().dtype);
      EXPECT_LT(distance(mine.input, theirs.input), tolerance) << segment.name;
      for (const TensorSpec& tensor : segment.tensors) {
        EXPECT_LT(distance(mine.parameters.slice(tensor.offset, tensor.count()),
                           theirs.parameters.slice(tensor.offset, tensor.count())),
                  tolerance)
            << tensor.name;
      }
    }
  }
}

TEST_P(Mixed, AProductIsTheFp32ProductOfWidenedOperandsRoundedOnce) {
  Job job = job_of(format().precision, 0.0);
  job.model.heads = 1;
  job.model.tied_embedding = true;  // so that it is run lane by lane
  const Model model(job);
  const LaneModel lanes(job, model, compute_);
  const Piece& attention = model.pieces()[1];
  const Segment& segment = model.segments()[attention.lanes];
  const Value parameters = narrowed(noise(Shape{segment.count}, 1, 0.4F), format().dtype);
  const Value h = narrowed(noise(Shape{1, 11, 36}, 2, 1.0F), format().dtype);
  const Value q = get(lanes.qkv({}, parameters, h))[0];
  const Value weights = widened(parameters);
  const Value wide_h = widened(h);
  // The whole product that the kernel computes: other shapes may round otherwise.
  const at::Tensor weight = tensor_view(weights.as<float>().first(3 * 36 * 36), {3 * 36, 36});
  const at::ScalarType type = format().dtype == DType::bf16 ? at::kBFloat16 : at::kHalf;
  const at::Tensor product = at::mm(tensor_view(wide_h.as<float>(), {11, 36}), weight.t());
  const at::Tensor expected = product.narrow(1, 0, 36).to(type).to(at::kFloat);
  const Value ours = widened(q);
  EXPECT_TRUE(at::equal(tensor_view(ours.as<float>(), {11, 36}), expected));
}

TEST_P(Mixed, WhatCannotBeHeldBecomesInfinite) {
  const Model model(job_of(format().precision, 0.0));
  const Segment& segment = model.segments()[2];
  const Value parameters = narrowed(noise(Shape{segment.count}, 2, 0.4F), format().dtype);
  const Value x = narrowed(noise(Shape{1, 11, 36}, 20, 1.0F), format().dtype);
  const Value dy = narrowed(noise(Shape{1, 11, 36}, 21, 60000.0F), format().dtype);
  const SegmentGradients gradients = get(model.backward(compute_, 2, parameters, x, std::nullopt, dy));
  const double max = largest(widened(gradients.parameters).as<float>());
  EXPECT_EQ(std::isinf(max), format().dtype == DType::f16) << max;
}

INSTANTIATE_TEST_SUITE_P(Formats, Mixed, testing::Values(0, 1), [](const testing::TestParamInfo<std::size_t>& format) {
  return std::string(to_string(formats[format.param].precision));
});

}  // namespace
}  // namespace firedrill
