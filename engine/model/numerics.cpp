#include "engine/model/numerics.h"

#include <torch/version.h>

#include <ATen/Config.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstdlib>

#include "engine/base/rng.h"
#include "engine/model/transformer.h"

namespace firedrill {
namespace {

void set_common() {
  at::set_num_threads(1);
  at::GradMode::set_enabled(false);
}

Value noise(const Shape& shape, std::uint64_t stream, float amplitude) {
  MutableValue out(DType::f32, shape);
  const Stream random(20260101, stream);
  std::uint64_t counter = 0;
  for (float& x : out.as<float>()) {
    const auto word = static_cast<std::int32_t>(static_cast<std::uint32_t>(random.at(counter++)));
    x = static_cast<float>(word) * (amplitude / 2147483648.0F);
  }
  return std::move(out).freeze();
}

Value tokens_for(const ModelSpec& spec, std::int64_t rows) {
  MutableValue out(DType::u8, Shape{rows, spec.sequence + 1});
  const Stream random(20260101, 7);
  std::uint64_t counter = 0;
  for (std::uint8_t& token : out.as<std::uint8_t>()) token = static_cast<std::uint8_t>(random.below(256, counter++));
  return std::move(out).freeze();
}

// Every segment forward and backward; parameters are noise, so that all tensors matter.
void probe_model(Compute& compute, const ModelSpec& spec, std::int64_t rows, DigestBuilder& digest) {
  Job job;
  job.model = spec;
  const Model model(job);
  const RandomCounter random{.key = 11, .counter = 3};
  const Targets targets{.tokens = tokens_for(spec, rows), .row_mask = {}};
  const auto get = [](auto result) {
    FD_CHECK(result.ok(), "the probe's kernels cannot fail: {}", describe(result.error()));
    return *std::move(result);
  };
  std::vector<Value> inputs = {targets.tokens};
  std::vector<Value> parameters;
  for (const Segment& segment : model.segments()) {
    parameters.push_back(noise(Shape{segment.count}, segment.index, 0.3F));
    digest.add(get(model.initial_parameters(compute, segment.index, 1)).digest());
    if (segment.index == model.head()) break;
    inputs.push_back(get(model.forward(compute, segment.index, parameters.back(), inputs.back(), random)));
    digest.add(inputs.back().digest());
  }
  digest.add(get(model.loss(compute, parameters.back(), inputs.back(), targets)).digest());
  SegmentGradients gradients = get(model.loss_backward(compute, parameters.back(), inputs.back(), targets, 0.125F));
  digest.add(gradients.input.digest()).add(gradients.parameters.digest());
  for (std::size_t i = model.head(); i-- > 0;) {
    gradients = get(model.backward(compute, i, parameters[i], inputs[i], random, gradients.input));
    digest.add(gradients.parameters.digest());
    if (gradients.input) digest.add(gradients.input.digest());
  }
}

// What the optimizer is made of besides + and *: division and square root.
void probe_arithmetic(DigestBuilder& digest) {
  const Value from = noise(Shape{4096}, 99, 1e-3F);
  MutableValue out(DType::f32, from.shape());
  const std::span<const float> x = from.as<float>();
  const std::span<float> y = out.as<float>();
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] / (std::sqrt(x[i] * x[i] * 0.05F) / 0.97F + 1e-8F);
  digest.add(std::move(out).freeze().digest());
}

}  // namespace

void pin_numerics() {
  ::setenv("ATEN_CPU_CAPABILITY", "default", 1);
  ::setenv("MKL_CBWR", "COMPATIBLE", 1);
  at::globalContext().setUserEnabledMkldnn(false);
  set_common();
}

void use_native_numerics() { set_common(); }

void set_numerics(Numerics numerics) { numerics == Numerics::pinned ? pin_numerics() : use_native_numerics(); }

std::string cpu_capability() { return at::get_cpu_capability(); }

Digest numerics_probe() {
  DirectCompute compute;
  return numerics_probe(compute);
}

Digest numerics_probe(Compute& compute) {
  DigestBuilder digest;
  probe_model(compute, {.layers = 1, .width = 16, .heads = 2, .sequence = 16, .dropout = 0.1}, 2, digest);
  probe_model(compute, {.layers = 1, .width = 48, .heads = 3, .sequence = 33, .dropout = 0.1}, 3, digest);
  probe_model(compute, {.layers = 1, .width = 128, .heads = 4, .sequence = 128, .dropout = 0.0}, 1, digest);
  probe_arithmetic(digest);
  return digest.finish();
}

std::string numerics_key(Numerics numerics) {
  return fmt::format("libtorch-{}/cpu/{}{}", TORCH_VERSION, numerics_probe().hex(),
                     numerics == Numerics::native ? "/native" : "");
}

}  // namespace firedrill
