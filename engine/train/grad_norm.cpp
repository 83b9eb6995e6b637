#include "engine/train/grad_norm.h"

#include <cmath>
#include <vector>

#include "engine/base/half.h"
#include "engine/model/arithmetic.h"
#include "engine/seam/collectives.h"  // grain

namespace firedrill {
namespace {

// Halves are added to halves until one number is left: 64 squares in 6 levels.
float grain_sum(const float* g) {
  constexpr int fours = grain / 4;
  Four sums[fours];
  for (int i = 0; i < fours; ++i) {
    const Four four = load(g + 4 * i);
    sums[i] = four * four;
  }
  for (int half = fours / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return (sums[0][0] + sums[0][2]) + (sums[0][1] + sums[0][3]);
}

// Node i of a level is the sum of nodes 2i and 2i + 1 of the level below; a node with one child is that child.
float tree_sum(std::vector<float> level) {
  std::size_t count = level.size();
  while (count > 1) {
    for (std::size_t i = 0; i < count / 2; ++i) level[i] = level[2 * i] + level[2 * i + 1];
    if (count % 2 == 1) level[count / 2] = level[count - 1];
    count = (count + 1) / 2;
  }
  return count == 0 ? 0.0F : level[0];
}

std::vector<float> grains_of(const Value& gradients) {
  const Value wide = widened(gradients);
  const std::span<const float> g = wide.as<float>();
  FD_CHECK(g.size() % grain == 0, "{} gradients are not whole grains of {}", g.size(), grain);
  std::vector<float> grains(g.size() / grain);
  for (std::size_t i = 0; i < grains.size(); ++i) grains[i] = grain_sum(g.data() + i * grain);
  return grains;
}

Value number(float value) {
  MutableValue out(DType::f32, Shape{1});
  out.as<float>()[0] = value;
  return std::move(out).freeze();
}

Result<Value> run_sum_of_squares(std::span<const std::byte>, std::span<Value> inputs) {
  return number(tree_sum(grains_of(inputs[0])));
}

Result<Value> run_sums_of_grains(std::span<const std::byte>, std::span<Value> inputs) {
  return Value::copy_of(std::span<const float>(grains_of(inputs[0])));
}

Result<Value> run_sum_over_grains(std::span<const std::byte>, std::span<Value> inputs) {
  const std::span<const float> sums = inputs[0].as<float>();
  return number(tree_sum(std::vector<float>(sums.begin(), sums.end())));
}

constexpr Kernel kernel = make_kernel("train.sum_of_squares", KernelKind::reduce, run_sum_of_squares);
constexpr Kernel grains_kernel = make_kernel("train.sums_of_grains", KernelKind::reduce, run_sums_of_grains);
constexpr Kernel over_grains_kernel = make_kernel("train.sum_over_grains", KernelKind::reduce, run_sum_over_grains);

}  // namespace

Result<Value> sum_of_squares(Compute& compute, const Value& gradients) {
  Value inputs[] = {gradients};
  return compute.run(kernel, {}, inputs);
}

Result<Value> sums_of_grains(Compute& compute, const Value& gradients) {
  Value inputs[] = {gradients};
  return compute.run(grains_kernel, {}, inputs);
}

Result<Value> sum_over_grains(Compute& compute, const Value& sums) {
  Value inputs[] = {sums};
  return compute.run(over_grains_kernel, {}, inputs);
}

double gradient_norm(std::span<const Value> sums_of_squares) {
  double sum = 0;
  for (const Value& value : sums_of_squares) sum += static_cast<double>(value.as<float>()[0]);
  return std::sqrt(sum);
}

GradientDecision decide_gradients(double norm_scaled, double loss_scale, double clip) {
  if (!std::isfinite(norm_scaled)) return {.overflow = true, .norm = norm_scaled, .gradient_scale = 0};
  const double norm = norm_scaled / loss_scale;
  const double coefficient = clip > 0 && norm > clip ? clip / (norm + 1e-6) : 1.0;
  return {.norm = norm, .gradient_scale = coefficient / loss_scale};
}

}  // namespace firedrill
