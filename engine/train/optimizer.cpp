#include "engine/train/optimizer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/half.h"
#include "engine/model/arithmetic.h"
#include "engine/train/adamw_scalars.h"

namespace firedrill {
namespace {

struct Coefficients {
  explicit Coefficients(const AdamWScalars& s)
      : gradient_scale(std::bit_cast<float>(s.gradient_scale)),
        keep(std::bit_cast<float>(s.keep)),
        beta1(std::bit_cast<float>(s.beta1)),
        one_minus_beta1(std::bit_cast<float>(s.one_minus_beta1)),
        beta2(std::bit_cast<float>(s.beta2)),
        one_minus_beta2(std::bit_cast<float>(s.one_minus_beta2)),
        correction2_root(std::bit_cast<float>(s.correction2_root)),
        epsilon(std::bit_cast<float>(s.epsilon)),
        step_size(std::bit_cast<float>(s.step_size)) {}
  float gradient_scale, keep, beta1, one_minus_beta1, beta2, one_minus_beta2, correction2_root, epsilon, step_size;
};

struct Run {
  float* p;
  float* m;
  float* v;
  const float* g;
};

// Elements [begin, end). `keep` is 1 where no decay applies: p * 1 is p.
void update(const Run& run, const Coefficients& c, float keep, std::int64_t begin, std::int64_t end) {
  by_fours(end - begin, [&](std::int64_t i, auto count) {
    const std::int64_t at = begin + i;
    const Four gradient = load(run.g + at, count) * c.gradient_scale;
    const Four mean = load(run.m + at, count) * c.beta1 + gradient * c.one_minus_beta1;
    const Four square = load(run.v + at, count) * c.beta2 + gradient * gradient * c.one_minus_beta2;
    store(mean, run.m + at, count);
    store(square, run.v + at, count);
    const Four change = mean / (square_root(square) / c.correction2_root + c.epsilon);
    store(load(run.p + at, count) * keep - c.step_size * change, run.p + at, count);
  });
}

// Inputs: parameters, exp_avg, exp_avg_sq, gradients, decay ranges.
Result<Value> run_adamw(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto s = scalars_as<AdamWScalars>(scalars);
  const Value gradients = widened(inputs[3]);
  const Value decay = std::move(inputs[4]);
  const Shape shape = inputs[0].shape();
  for (const Value& value : {inputs[0], inputs[1], inputs[2], gradients}) {
    FD_CHECK(value.shape() == shape && value.dtype() == DType::f32, "parameters, moments and gradients differ in size");
  }
  MutableValue p(std::move(inputs[0]));
  MutableValue m(std::move(inputs[1]));
  MutableValue v(std::move(inputs[2]));
  const Run run{p.as<float>().data(), m.as<float>().data(), v.as<float>().data(), gradients.as<float>().data()};
  const Coefficients c(s);
  const auto size = static_cast<std::int64_t>(p.as<float>().size());
  const auto offset = static_cast<std::int64_t>(s.offset);
  const std::span<const std::int64_t> ranges = decay.as<std::int64_t>();
  std::int64_t done = 0;
  for (std::size_t i = 0; i + 1 < ranges.size(); i += 2) {
    const std::int64_t begin = std::clamp(ranges[i] - offset, done, size);
    const std::int64_t end = std::clamp(ranges[i + 1] - offset, begin, size);
    update(run, c, 1.0F, done, begin);
    update(run, c, c.keep, begin, end);
    done = end;
  }
  update(run, c, 1.0F, done, size);
  return Value::pack({std::move(p).freeze(), std::move(m).freeze(), std::move(v).freeze()});
}

constexpr Kernel adamw = make_kernel("train.adamw", KernelKind::optimizer, run_adamw);

// By squaring: only multiplications, so no libm.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

std::uint32_t bits(double number) { return std::bit_cast<std::uint32_t>(static_cast<float>(number)); }

}  // namespace

Result<OptimizerState> adamw_update(Compute& compute, const OptimizerSpec& spec, const AdamWStep& step,
                                    OptimizerState state, Value gradients, const Value& decay_ranges,
                                    std::int64_t offset) {
  FD_CHECK(step.step >= 1, "updates are numbered from 1, not {}", step.step);
  const AdamWScalars scalars{.offset = static_cast<std::uint64_t>(offset),
                             .gradient_scale = bits(step.gradient_scale),
                             .keep = bits(1 - step.lr * spec.weight_decay),
                             .beta1 = bits(spec.beta1),
                             .one_minus_beta1 = bits(1 - spec.beta1),
                             .beta2 = bits(spec.beta2),
                             .one_minus_beta2 = bits(1 - spec.beta2),
                             .correction2_root = bits(std::sqrt(1 - power(spec.beta2, step.step))),
                             .epsilon = bits(spec.epsilon),
                             .step_size = bits(step.lr / (1 - power(spec.beta1, step.step)))};
  Value inputs[] = {std::move(state.parameters), std::move(state.exp_avg), std::move(state.exp_avg_sq),
                    std::move(gradients), decay_ranges};
  FD_TRY(const Value pack, run_kernel(compute, adamw, scalars, inputs));
  return OptimizerState{.parameters = pack[0], .exp_avg = pack[1], .exp_avg_sq = pack[2]};
}

Value zeros_like(const Value& parameters) { return zeros_of(parameters.count()); }

Value zeros_of(std::int64_t count) {
  MutableValue zeros(DType::f32, Shape{count});
  std::fill(zeros.bytes().begin(), zeros.bytes().end(), std::byte{0});
  return std::move(zeros).freeze();
}

}  // namespace firedrill
