// One training step of the `small` shape: the engine's kernels against a plain LibTorch autograd model with LibTorch's
// fused AdamW, in turns in one run and under the same pins. Prints both medians and their ratio.
//
//   step_bench [--layers N] [--width N] [--heads N] [--sequence N] [--rows N] [--dropout-percent N] [--rounds
//   N]
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/model/numerics.h"
#include "engine/model/reference_model.h"
#include "engine/train/grad_norm.h"
#include "engine/train/optimizer.h"

namespace firedrill {
namespace {

template <class T>
T get(Result<T> result) {
  FD_CHECK(result.ok(), "{}", describe(result.error()));
  return *std::move(result);
}

// Seconds of each part of a step, summed over steps.
struct Parts {
  double forward[4] = {};
  double backward[4] = {};
  double norm = 0;
  double optimizer = 0;
};

class Watch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class EngineStep {
 public:
  EngineStep(const Job& job, const Model& model, std::vector<Value> parameters) : job_(job), model_(model) {
    for (Value& p : parameters) states_.push_back({p, zeros_like(p), zeros_like(p)});
  }

  float run(const Value& tokens, Parts& parts) {
    const RandomCounter random{.key = 1, .counter = static_cast<std::uint64_t>(++step_)};
    const Targets targets{.tokens = tokens, .row_mask = {}};
    Watch watch;
    std::vector<Value> inputs = {tokens};
    for (std::size_t i = 0; i < model_.head(); ++i) {
      inputs.push_back(get(model_.forward(compute_, i, states_[i].parameters, inputs.back(), random)));
      parts.forward[static_cast<int>(model_.segments()[i].kind)] += watch.lap();
    }
    const float loss = get(model_.loss(compute_, states_.back().parameters, inputs.back(), targets)).as<float>()[0];
    parts.forward[3] += watch.lap();
    const float factor = 1.0F / static_cast<float>(tokens.shape()[0] * job_.model.sequence);
    std::vector<Value> gradients(states_.size());
    SegmentGradients g = get(model_.loss_backward(compute_, states_.back().parameters, inputs.back(), targets, factor));
    gradients.back() = g.parameters;
    parts.backward[3] += watch.lap();
    for (std::size_t i = model_.head(); i-- > 0;) {
      g = get(model_.backward(compute_, i, states_[i].parameters, inputs[i], random, std::move(g.input)));
      gradients[i] = g.parameters;
      parts.backward[static_cast<int>(model_.segments()[i].kind)] += watch.lap();
    }
    g = {};
    std::vector<Value> sums;
    for (const Value& gradient : gradients) sums.push_back(get(sum_of_squares(compute_, gradient)));
    const GradientDecision decision = decide_gradients(gradient_norm(sums), 1.0, 1.0);
    parts.norm += watch.lap();
    for (std::size_t i = 0; i < states_.size(); ++i) {
      states_[i] = get(adamw_update(compute_, job_.optimizer,
                                    {.lr = job_.optimizer.lr, .step = step_, .gradient_scale = decision.gradient_scale},
                                    std::move(states_[i]), std::move(gradients[i]), model_.segments()[i].decay_ranges));
    }
    parts.optimizer += watch.lap();
    return loss * factor;
  }

 private:
  const Job& job_;
  const Model& model_;
  DirectCompute compute_;
  std::vector<OptimizerState> states_;
  std::int64_t step_ = 0;
};

class PlainStep {
 public:
  PlainStep(const Job& job, const Model& model, const std::vector<Value>& parameters)
      : job_(job), reference_(job, model, parameters) {
    reference_.own_dropout = true;
    for (auto& [name, tensor] : reference_.tensors()) {
      parameters_.push_back(tensor);
      exp_avg_.push_back(at::zeros_like(tensor));
      exp_avg_sq_.push_back(at::zeros_like(tensor));
      steps_.push_back(at::zeros({}, at::kFloat));
    }
  }

  float run(const at::Tensor& tokens) {
    at::Tensor loss;
    {
      const at::AutoGradMode record(true);
      loss = reference_.whole(tokens) / static_cast<double>(tokens.size(0) * job_.model.sequence);
      for (auto& p : parameters_) p.mutable_grad() = at::Tensor();
      loss.backward();
    }
    torch::nn::utils::clip_grad_norm_(parameters_, 1.0);
    std::vector<at::Tensor> gradients;
    for (auto& p : parameters_) gradients.push_back(p.grad());
    for (auto& s : steps_) s += 1;
    const OptimizerSpec& o = job_.optimizer;
    at::_fused_adamw_(parameters_, gradients, exp_avg_, exp_avg_sq_, {}, steps_, o.lr, o.beta1, o.beta2, o.weight_decay,
                      o.epsilon, false, false);
    return loss.item<float>();
  }

 private:
  const Job& job_;
  ReferenceModel reference_;
  std::vector<at::Tensor> parameters_, exp_avg_, exp_avg_sq_, steps_;
};

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

int option(int argc, char** argv, const char* name, int otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return std::atoi(argv[i + 1]);
  }
  return otherwise;
}

void report(const Parts& parts, int rounds) {
  const char* names[] = {"embed", "attention", "mlp", "head"};
  const double to_us = 1e6 / rounds;
  for (int i = 0; i < 4; ++i) {
    fmt::print("  {:<10} forward {:>9.1f} us  backward {:>9.1f} us\n", names[i], parts.forward[i] * to_us,
               parts.backward[i] * to_us);
  }
  fmt::print("  {:<10} {:>17.1f} us\n  {:<10} {:>17.1f} us\n", "norm", parts.norm * to_us, "optimizer",
             parts.optimizer * to_us);
}

int bench(int argc, char** argv) {
  pin_numerics();
  Job job;
  job.model = {.layers = option(argc, argv, "--layers", 2),
               .width = option(argc, argv, "--width", 192),
               .heads = option(argc, argv, "--heads", 6),
               .sequence = option(argc, argv, "--sequence", 32),
               .dropout = option(argc, argv, "--dropout-percent", 0) / 100.0};
  job.optimizer.weight_decay = 0.1;
  const int rows = option(argc, argv, "--rows", 16);
  const int rounds = option(argc, argv, "--rounds", 20);
  const Model model(job);
  DirectCompute compute;
  std::vector<Value> parameters;
  for (const Segment& s : model.segments()) parameters.push_back(get(model.initial_parameters(compute, s.index, 1)));
  EngineStep engine(job, model, parameters);
  PlainStep plain(job, model, parameters);
  MutableValue filled(DType::u8, Shape{rows, job.model.sequence + 1});
  for (std::size_t i = 0; i < filled.bytes().size(); ++i) filled.as<std::uint8_t>()[i] = (i * i * 31 + i / 7) % 96 + 32;
  const Value tokens = std::move(filled).freeze();
  const at::Tensor plain_tokens = at::from_blob(const_cast<std::byte*>(tokens.bytes().data()),
                                                {rows, job.model.sequence + 1}, at::TensorOptions().dtype(at::kByte));
  Parts warm_up;
  for (int i = 0; i < 3; ++i) fmt::print("loss {:.4f} {:.4f}\n", engine.run(tokens, warm_up), plain.run(plain_tokens));
  Parts parts;
  std::vector<double> engine_times;
  std::vector<double> plain_times;
  for (int i = 0; i < rounds; ++i) {
    Watch watch;
    engine.run(tokens, parts);
    engine_times.push_back(watch.lap());
    plain.run(plain_tokens);
    plain_times.push_back(watch.lap());
  }
  report(parts, rounds);
  fmt::print("{} parameters, {} x {} tokens\nengine {:.3f} ms, plain {:.3f} ms, ratio {:.3f}\n",
             model.parameter_count(), rows, job.model.sequence, median(engine_times) * 1e3, median(plain_times) * 1e3,
             median(engine_times) / median(plain_times));
  return 0;
}

}  // namespace
}  // namespace firedrill

int main(int argc, char** argv) { return firedrill::bench(argc, argv); }
