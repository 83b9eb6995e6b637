// The engine's segments and optimizer over fifty steps against the plain LibTorch model with autograd, LibTorch's own
// clipping and LibTorch's AdamW.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/rng.h"
#include "engine/model/numerics.h"
#include "engine/train/grad_norm.h"
#include "engine/train/optimizer.h"
#include "engine/train/plain_training.h"
#include "engine/train/schedule.h"

namespace firedrill {
namespace {

template <class T>
T get(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(describe(result.error()));
  return *std::move(result);
}

constexpr std::int64_t rows = 4;

// Text with something to learn: a walk over few letters.
Value tokens_of(const Job& job, std::uint64_t step) {
  MutableValue tokens(DType::u8, Shape{rows, job.model.sequence + 1});
  std::uint8_t letter = static_cast<std::uint8_t>('a' + step % 7);
  std::uint64_t counter = step * 1000;
  for (std::uint8_t& token : tokens.as<std::uint8_t>()) {
    letter =
        static_cast<std::uint8_t>('a' + (letter - 'a' + 1 + static_cast<int>(Stream(8, 8).below(2, counter++))) % 9);
    token = letter;
  }
  return std::move(tokens).freeze();
}

class Engine {
 public:
  explicit Engine(const Job& job) : job_(job), model_(job) {
    for (const Segment& segment : model_.segments()) {
      const Value parameters = get(model_.initial_parameters(compute_, segment.index, job.seed));
      states_.push_back({parameters, zeros_like(parameters), zeros_like(parameters)});
    }
  }
  const Model& model() const { return model_; }
  std::vector<Value> parameters() const {
    std::vector<Value> out;
    for (const OptimizerState& state : states_) out.push_back(state.parameters);
    return out;
  }

  double step(const Value& tokens, std::int64_t number, double lr) {
    const float factor = 1.0F / static_cast<float>(rows * job_.model.sequence);
    std::vector<Value> inputs = {tokens};
    for (std::size_t i = 0; i < model_.head(); ++i) {
      inputs.push_back(get(model_.forward(compute_, i, states_[i].parameters, inputs[i], std::nullopt)));
    }
    const Value& last = states_.back().parameters;
    const float loss = get(model_.loss(compute_, last, inputs.back(), {tokens, {}})).as<float>()[0] * factor;
    SegmentGradients g = get(model_.loss_backward(compute_, last, inputs.back(), {tokens, {}}, factor));
    std::vector<Value> gradients(states_.size());
    gradients.back() = g.parameters;
    for (std::size_t i = model_.head(); i-- > 0;) {
      g = get(model_.backward(compute_, i, states_[i].parameters, inputs[i], std::nullopt, g.input));
      gradients[i] = g.parameters;
    }
    std::vector<Value> sums;
    for (const Value& gradient : gradients) sums.push_back(get(sum_of_squares(compute_, gradient)));
    const GradientDecision decision = decide_gradients(gradient_norm(sums), 1.0, job_.optimizer.clip);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      states_[i] = get(adamw_update(compute_, job_.optimizer,
                                    {.lr = lr, .step = number, .gradient_scale = decision.gradient_scale},
                                    std::move(states_[i]), gradients[i], model_.segments()[i].decay_ranges));
    }
    return loss;
  }

 private:
  const Job& job_;
  Model model_;
  DirectCompute compute_;
  std::vector<OptimizerState> states_;
};

TEST(WholeModel, FiftyStepsFollowThePlainModel) {
  pin_numerics();
  Job job;
  job.model = {.layers = 2, .width = 32, .heads = 2, .sequence = 24};
  job.optimizer = {.lr = 0.003, .warmup_steps = 5, .decay = Decay::cosine, .weight_decay = 0.1, .clip = 1.0};
  job.steps = 50;
  Engine engine(job);
  PlainTraining plain(job, engine.model());
  double first = 0;
  double last = 0;
  for (int step = 1; step <= job.steps; ++step) {
    const Value tokens = tokens_of(job, static_cast<std::uint64_t>(step));
    const double lr = learning_rate(job.optimizer, job.steps, step);
    last = engine.step(tokens, step, lr);
    const at::Tensor rows_of_step = at::from_blob(const_cast<std::byte*>(tokens.bytes().data()),
                                                  {rows, job.model.sequence + 1}, at::TensorOptions().dtype(at::kByte));
    ASSERT_NEAR(last, plain.step(rows_of_step), 2e-4) << "step " << step;
    if (step == 1) first = last;
  }
  EXPECT_NEAR(first, std::log(256.0), 0.1);
  EXPECT_LT(last, 2.5);
  const std::vector<Value> parameters = engine.parameters();
  for (const Segment& segment : engine.model().segments()) {
    for (const TensorSpec& spec : segment.tensors) {
      const auto part = parameters[segment.index].as<float>().subspan(static_cast<std::size_t>(spec.offset),
                                                                      static_cast<std::size_t>(spec.count()));
      EXPECT_LT(plain.distance(segment, spec, part), 2e-5) << spec.name;
    }
  }
}

}  // namespace
}  // namespace firedrill
