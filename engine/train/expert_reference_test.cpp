// Fifty steps of moe-nano's shape follow the plain mixture of experts: one model without lanes or ranks, by autograd
// and LibTorch's AdamW. What it shares with the engine is the definition: a source lane is a dp lane's micro-batch cut
// at the cp lanes, and tokens over an expert's capacity lose it there.
#include <gtest/gtest.h>

#include "engine/model/moe_model.h"
#include "engine/model/numerics.h"
#include "engine/model/reference_model.h"
#include "engine/model/reference_moe.h"
#include "engine/train/schedule.h"
#include "engine/train/test_layouts.h"

namespace firedrill {
namespace {

Job moe_nano_shape() {
  Job job;
  job.model = {.layers = 2, .width = 16, .heads = 2, .hidden = 16, .sequence = 16};
  job.model.experts = 8;
  job.lanes = {.dp = 4, .tp = 2, .cp = 2};
  job.batch = {.lane_micro_batch = 1, .accumulation = 2};
  job.data.last_batch = LastBatch::drop;
  job.optimizer = {.lr = 0.003, .warmup_steps = 4, .decay = Decay::cosine, .weight_decay = 0.1, .clip = 1.0};
  job.steps = 50;
  return job;
}

class Plain {
 public:
  explicit Plain(const Job& job) : job_(job) {
    Job dense = job;
    dense.lanes = {.dp = job.lanes.dp};
    dense.model.experts = 0;
    reference_ = std::make_unique<ReferenceModel>(dense, Model(dense), initial_of(dense));
    Job lone = job;
    lone.lanes = {.dp = job.lanes.dp};
    const Model model(lone);
    const std::vector<Value> parameters = initial_of(lone);
    experts_.resize(static_cast<std::size_t>(job.model.layers));
    for (const Segment& segment : model.segments()) {
      for (const TensorSpec& tensor : segment.tensors) take(segment, tensor, parameters[segment.index]);
    }
    for (auto& [name, tensor] : reference_->tensors()) {
      const bool of_mlp = name.find(".mlp.") != std::string::npos && name.find("norm") == std::string::npos;
      if (!of_mlp) all_.push_back(tensor);
    }
    std::vector<at::Tensor> matrices;
    std::vector<at::Tensor> norms;
    for (const at::Tensor& tensor : all_) (tensor.dim() >= 2 ? matrices : norms).push_back(tensor);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(matrices, std::make_unique<torch::optim::AdamWOptions>(options(job.optimizer.weight_decay)));
    groups.emplace_back(norms, std::make_unique<torch::optim::AdamWOptions>(options(0)));
    optimizer_ = std::make_unique<torch::optim::AdamW>(groups, options(0));
  }

  // The loss as the engine reports it: without the balance loss.
  double step(const Sampler& sampler, const SamplerState& at, const Value& text, double lr) {
    const at::AutoGradMode record(true);
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(lr);
    optimizer_->zero_grad();
    const double tokens = static_cast<double>(job_.global_batch()) * job_.model.sequence;
    double reported = 0;
    for (int lane = 0; lane < job_.lanes.dp; ++lane) {
      for (int micro = 0; micro < job_.batch.accumulation; ++micro) {
        at::Tensor balance = at::zeros({});
        const at::Tensor loss = micro_batch(rows_of(sampler.rows_for(at, lane, micro), text), balance);
        ((loss + balance) / tokens).backward();
        reported += loss.item<double>() / tokens;
      }
    }
    torch::nn::utils::clip_grad_norm_(all_, job_.optimizer.clip);
    optimizer_->step();
    return reported;
  }
  const std::vector<ReferenceExperts>& experts() const { return experts_; }

 private:
  static std::vector<Value> initial_of(const Job& job) {
    const Model model(job);
    DirectCompute compute;
    std::vector<Value> parameters;
    for (const Segment& segment : model.segments()) {
      parameters.push_back(*model.initial_parameters(compute, segment.index, job.seed));
    }
    return parameters;
  }

  void take(const Segment& segment, const TensorSpec& tensor, const Value& flat) {
    if (segment.kind != SegmentKind::router && segment.expert < 0) return;
    const auto part = flat.slice(tensor.offset, tensor.count());
    const auto sizes = tensor.shape.sizes();
    at::Tensor leaf = tensor_view(part.as<float>(), {sizes.data(), sizes.size()}).clone().set_requires_grad(true);
    all_.push_back(leaf);
    ReferenceExperts& layer = experts_[segment.layer];
    if (segment.expert < 0) {
      layer.router = leaf;
    } else {
      (tensor.name.ends_with("down.weight") ? layer.down : layer.gate_up).push_back(leaf);
    }
  }

  at::Tensor rows_of(const Value& samples, const Value& text) const {
    const std::int64_t length = job_.model.sequence + 1;
    at::Tensor tokens = at::empty({samples.count(), length}, at::kByte);
    std::uint8_t* to = tokens.data_ptr<std::uint8_t>();
    for (const std::int64_t sample : samples.as<std::int64_t>()) {
      FD_CHECK(sample >= 0, "the test's batches are full");
      to = std::copy_n(text.as<std::uint8_t>().data() + sample * job_.model.sequence, length, to);
    }
    return tokens;
  }

  at::Tensor micro_batch(const at::Tensor& tokens, at::Tensor& balance) {
    at::Tensor x = reference_->embed(tokens);
    for (int layer = 0; layer < job_.model.layers; ++layer)
      x = mixture(layer, reference_->attention(layer, x), balance);
    return reference_->loss(x, tokens);
  }

  at::Tensor mixture(int layer, const at::Tensor& x, at::Tensor& balance) {
    const std::string norm = fmt::format("layers.{}.mlp.norm", layer);
    const at::Tensor h = at::layer_norm(x, {job_.model.width}, reference_->tensor(norm + ".weight"),
                                        reference_->tensor(norm + ".bias"), 1e-5);
    at::Tensor out = at::zeros_like(x);
    for (int cp = 0; cp < job_.lanes.cp; ++cp) {
      const LaneSequence lane(job_.model.sequence, job_.lanes.cp, cp);
      at::Tensor positions = at::empty({lane.size}, at::kLong);
      for (std::int64_t t = 0; t < lane.size; ++t) positions.data_ptr<std::int64_t>()[t] = lane.position(t);
      const at::Tensor of_lane = h.index_select(1, positions).reshape({-1, job_.model.width});
      const ReferenceMixture mixed =
          reference_mixture(job_.model, experts_[static_cast<std::size_t>(layer)], of_lane,
                            expert_capacity(job_.model, of_lane.size(0)), at::ones({of_lane.size(0)}));
      balance = balance + mixed.balance;
      out = out.index_add(1, positions, mixed.out.view({x.size(0), lane.size, job_.model.width}));
    }
    return x + out;
  }

  torch::optim::AdamWOptions options(double decay) const {
    const OptimizerSpec& o = job_.optimizer;
    return torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.epsilon).weight_decay(decay);
  }

  const Job& job_;
  std::unique_ptr<ReferenceModel> reference_;
  std::vector<ReferenceExperts> experts_;  // by layer
  std::vector<at::Tensor> all_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
};

TEST(ExpertReference, FiftyStepsFollowThePlainMixture) {
  pin_numerics();
  const Job job = moe_nano_shape();
  const Value text = text_to_learn();
  const Model model(job);
  const Result<Sampler> sampler = Sampler::make(job, text.count());
  const CrewResult engine = Crew(job, {}, model, *sampler, text).run(job.steps);
  Plain plain(job);
  SamplerState at = sampler->start();
  for (int step = 1; step <= job.steps; ++step) {
    const double loss = plain.step(*sampler, at, text, learning_rate(job.optimizer, job.steps, step));
    ASSERT_NEAR(static_cast<double>(engine.losses[static_cast<std::size_t>(step - 1)]), loss, 3e-4) << "step " << step;
    at = sampler->advance(at);
  }
  EXPECT_LT(engine.losses.back(), engine.losses.front() - 2.0F);  // measured: from 5.55 to 3.19
  for (int layer = 0; layer < job.model.layers; ++layer) {
    const std::string name = fmt::format("layers.{}.router.weight", layer);
    const auto ours = engine.held.back().at(name).value.as<float>();
    const at::Tensor theirs = plain.experts()[static_cast<std::size_t>(layer)].router.detach().reshape({-1});
    const at::Tensor mine = tensor_view(ours, {theirs.numel()});
    EXPECT_LT((mine - theirs).abs().mean().item<double>(), 5e-5) << name;
  }
}

}  // namespace
}  // namespace firedrill
