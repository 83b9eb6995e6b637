// The mixture of experts against autograd of the plain one, and what dispatch and combine promise of tokens and places.
#include "engine/model/moe_model.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "engine/base/rng.h"
#include "engine/model/numerics.h"
#include "engine/model/reference_moe.h"
#include "engine/model/tensor_view.h"
#include "engine/model/transformer.h"

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

at::Tensor tensor_of(const Value& value) {
  const auto sizes = value.shape().sizes();
  return tensor_view(value.as<float>(), {sizes.data(), sizes.size()}).clone();
}

double relative_distance(const at::Tensor& ours, const at::Tensor& theirs) {
  const at::Tensor flat = theirs.detach().reshape({-1});
  return ((ours.reshape({-1}) - flat).abs().max() / flat.abs().max().clamp_min(1e-20)).item<double>();
}

Job job_with(int experts, int top_k, double capacity_factor) {
  Job job;
  job.model = {.layers = 1, .width = 20, .heads = 2, .hidden = 12, .sequence = 12};
  job.model.experts = experts;
  job.model.top_k = top_k;
  job.model.capacity_factor = capacity_factor;
  job.model.balance_loss = 0.3;
  job.batch.lane_micro_batch = 3;
  return job;
}

// One source lane through all experts, as the engine does it, beside the plain mixture.
class Mixture {
 public:
  explicit Mixture(const Job& job)
      : job_(job), model_(job, compute_), spec_(job.model), tokens_(job.batch.lane_micro_batch * spec_.sequence) {
    h_ = noise(Shape{job.batch.lane_micro_batch, spec_.sequence, spec_.width}, 1, 1.0F);
    router_ = padded({{"weight", {spec_.experts, spec_.width}}}, 2);
    for (int e = 0; e < spec_.experts; ++e) {
      experts_.push_back(
          padded({{"gate_up.weight", {2 * spec_.hidden, spec_.width}}, {"down.weight", {spec_.width, spec_.hidden}}},
                 static_cast<std::uint64_t>(10 + e)));
    }
    MutableValue mask(DType::u8, Shape{job.batch.lane_micro_batch});
    for (std::size_t row = 0; row < mask.as<std::uint8_t>().size(); ++row) mask.as<std::uint8_t>()[row] = row != 1;
    mask_ = std::move(mask).freeze();
  }

  Value forward() {
    const auto routed = get(model_.route(router_, h_, mask_));
    const Value x = get(model_.dispatch(h_, routed.places));
    std::vector<Value> out;
    for (std::size_t e = 0; e < experts_.size(); ++e) out.push_back(get(model_.expert(experts_[e], x[e])));
    return get(model_.combine(routed.places, routed.gates, Value::pack(out)));
  }

  struct Gradients {
    at::Tensor h;
    Value router;
    std::vector<Value> experts;
  };
  Gradients backward(const Value& d_out, float factor) {
    const auto routed = get(model_.route(router_, h_, mask_));
    const Value x = get(model_.dispatch(h_, routed.places));
    const Value d = get(model_.dispatch(d_out, routed.places));
    std::vector<Value> d_x;
    std::vector<float> d_gates;
    Gradients gradients;
    for (std::size_t e = 0; e < experts_.size(); ++e) {
      const Value gates = model_.gates_of(routed.gates, static_cast<int>(e));
      const Value pack = get(model_.expert_backward(experts_[e], x[e], gates, d[e]));
      d_x.push_back(pack[0]);
      const auto run = pack[1].as<float>();
      d_gates.insert(d_gates.end(), run.begin(), run.end());
      gradients.experts.push_back(pack[2]);
    }
    const Value d_h = get(model_.combine(routed.places, Value(), Value::pack(d_x)));
    const Value through =
        get(model_.route_backward(router_, h_, mask_, Value::copy_of(std::span<const float>(d_gates)), factor));
    gradients.h = tensor_of(d_h) + tensor_of(through[0]);
    gradients.router = through[1];
    return gradients;
  }

  void compare() {
    const Value d_out = noise(h_.shape(), 3, 1.0F);
    const float factor = 0.125F;
    const at::AutoGradMode record(true);
    at::Tensor h = leaf(tensor_of(h_).view({tokens_, spec_.width}));
    ReferenceExperts weights{
        .router = leaf(first(router_, {spec_.experts, spec_.width}, 0)), .gate_up = {}, .down = {}};
    const std::int64_t gate_up_count = (2 * spec_.hidden * spec_.width + 63) / 64 * 64;
    for (const Value& expert : experts_) {
      weights.gate_up.push_back(leaf(first(expert, {2 * spec_.hidden, spec_.width}, 0)));
      weights.down.push_back(leaf(first(expert, {spec_.width, spec_.hidden}, gate_up_count)));
    }
    at::Tensor present = at::ones({tokens_});
    present.narrow(0, spec_.sequence, spec_.sequence).zero_();
    const ReferenceMixture mixture = reference_mixture(spec_, weights, h, expert_capacity(spec_, tokens_), present);
    dropped_ = spec_.top_k * static_cast<std::int64_t>(present.sum().item<float>()) -
               static_cast<std::int64_t>(mixture.kept.sum().item<float>());
    EXPECT_LT(relative_distance(tensor_of(forward()), mixture.out), tolerance);
    ((mixture.out * tensor_of(d_out).view({tokens_, spec_.width})).sum() + factor * mixture.balance).backward();
    const Gradients ours = backward(d_out, factor);
    EXPECT_LT(relative_distance(ours.h, h.grad()), tolerance);
    EXPECT_LT(relative_distance(first(ours.router, {spec_.experts, spec_.width}, 0), weights.router.grad()), tolerance);
    for (std::size_t e = 0; e < experts_.size(); ++e) {
      EXPECT_LT(
          relative_distance(first(ours.experts[e], {2 * spec_.hidden, spec_.width}, 0), weights.gate_up[e].grad()),
          tolerance)
          << "expert " << e;
      EXPECT_LT(
          relative_distance(first(ours.experts[e], {spec_.width, spec_.hidden}, gate_up_count), weights.down[e].grad()),
          tolerance)
          << "expert " << e;
    }
  }
  std::int64_t dropped() const { return dropped_; }

 private:
  static constexpr double tolerance = 2e-5;

  static at::Tensor leaf(at::Tensor tensor) { return tensor.set_requires_grad(true); }
  static at::Tensor first(const Value& flat, at::IntArrayRef sizes, std::int64_t offset) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return tensor_of(flat.slice(offset, count)).view(sizes).clone();
  }
  static Value padded(const std::vector<NamedShape>& tensors, std::uint64_t stream) {
    std::int64_t count = 0;
    for (const NamedShape& tensor : tensors) count += whole_grains(tensor.shape.count());
    MutableValue out(noise(Shape{count}, stream, 0.6F));
    std::int64_t offset = 0;
    for (const NamedShape& tensor : tensors) {
      const std::int64_t end = offset + whole_grains(tensor.shape.count());
      for (std::int64_t i = offset + tensor.shape.count(); i < end; ++i)
        out.as<float>()[static_cast<std::size_t>(i)] = 0;
      offset = end;
    }
    return std::move(out).freeze();
  }

  Job job_;
  DirectCompute compute_;
  MoeModel model_;
  const ModelSpec& spec_;
  std::int64_t tokens_;
  Value h_;
  Value router_;
  std::vector<Value> experts_;
  Value mask_;
  std::int64_t dropped_ = 0;
};

class Experts : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }
};

TEST_F(Experts, ForwardAndBackwardAreThoseOfThePlainMixture) {
  Mixture roomy(job_with(5, 2, 2.5));
  roomy.compare();
  EXPECT_EQ(roomy.dropped(), 0);
  Mixture tight(job_with(5, 2, 0.8));
  tight.compare();
  EXPECT_GT(tight.dropped(), 0);
}

TEST_F(Experts, WithOneChoiceTheRouterLearnsFromTheProbability) {
  Mixture one(job_with(4, 1, 1.0));
  one.compare();
}

TEST_F(Experts, EveryExpertForEveryTokenIsTheSoftmaxOverAll) {
  Mixture all(job_with(3, 3, 1.0));
  all.compare();
  EXPECT_EQ(all.dropped(), 0);
}

TEST_F(Experts, CapacityIsRoundedUpAndNeverMoreThanTheTokens) {
  const ModelSpec model = job_with(8, 2, 1.25).model;
  EXPECT_EQ(expert_capacity(model, 8), 3);  // 2.5
  EXPECT_EQ(expert_capacity(model, 64), 20);
  EXPECT_EQ(expert_capacity(job_with(8, 2, 100).model, 8), 8);
  EXPECT_EQ(expert_capacity(job_with(8, 1, 0.001).model, 8), 1);
}

// With gates that sum to 1, experts that give back what they get, and room for all, combine(dispatch(x)) is x.
RC_GTEST_PROP(Dispatch, KeepsEveryTokenThatHasAPlaceAndNoOther, ()) {
  const int experts = *rc::gen::inRange(1, 7);
  const int top_k = *rc::gen::inRange(1, experts + 1);
  const double factor = *rc::gen::element(0.3, 0.7, 1.0, 1.25, 8.0);
  Job job = job_with(experts, top_k, factor);
  job.batch.lane_micro_batch = *rc::gen::inRange(1, 4);
  const std::int64_t tokens = std::int64_t{job.batch.lane_micro_batch} * job.model.sequence;
  const auto stream = static_cast<std::uint64_t>(*rc::gen::inRange(0, 1 << 30));
  DirectCompute compute;
  const MoeModel model(job, compute);
  const Value x = noise(Shape{job.batch.lane_micro_batch, job.model.sequence, job.model.width}, stream, 1.0F);
  const Value router = noise(Shape{whole_grains(experts * job.model.width)}, stream + 1, 1.0F);
  const auto routed = get(model.route(router, x, Value()));
  const auto places = routed.places.as<std::int32_t>();
  const auto gates = routed.gates.as<float>();
  const auto capacity = static_cast<std::size_t>(expert_capacity(job.model, tokens));
  RC_ASSERT(places.size() == static_cast<std::size_t>(experts) * capacity);

  std::vector<int> times(static_cast<std::size_t>(tokens));
  std::vector<float> weight(static_cast<std::size_t>(tokens));
  for (std::size_t e = 0; e < static_cast<std::size_t>(experts); ++e) {
    std::int32_t before = -1;
    bool ended = false;  // places are taken from the first on, in the order of tokens
    for (std::size_t row = 0; row < capacity; ++row) {
      const std::int32_t token = places[e * capacity + row];
      if (token < 0) {
        ended = true;
        RC_ASSERT(gates[e * capacity + row] == 0.0F);
        continue;
      }
      RC_ASSERT(!ended && token > before && token < tokens);
      before = token;
      ++times[static_cast<std::size_t>(token)];
      weight[static_cast<std::size_t>(token)] += gates[e * capacity + row];
    }
  }
  const bool room = capacity == static_cast<std::size_t>(tokens);
  for (std::size_t token = 0; token < times.size(); ++token) {
    RC_ASSERT(times[token] <= top_k);
    if (room) RC_ASSERT(times[token] == top_k);
  }
  const Value back = get(model.combine(routed.places, routed.gates, get(model.dispatch(x, routed.places))));
  const auto width = static_cast<std::size_t>(job.model.width);
  for (std::size_t i = 0; i < back.as<float>().size(); ++i) {
    RC_ASSERT(std::abs(back.as<float>()[i] - weight[i / width] * x.as<float>()[i]) < 1e-5F);
  }
  const Value again = get(model.combine(routed.places, Value(), get(model.dispatch(x, routed.places))));
  for (std::size_t i = 0; i < again.as<float>().size(); ++i) {
    RC_ASSERT(std::abs(again.as<float>()[i] - static_cast<float>(times[i / width]) * x.as<float>()[i]) < 1e-5F);
  }
}

}  // namespace
}  // namespace firedrill
