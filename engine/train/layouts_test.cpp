// Every layout of a job gives the same bits, and the bits are those of the right thing.
#include <gtest/gtest.h>

#include "engine/model/initial.h"
#include "engine/model/reference_model.h"
#include "engine/train/layouts_fixture.h"
#include "engine/train/schedule.h"

namespace firedrill {
namespace {

TEST_F(Layouts, TensorParallelDegreesChangeNoBit) {
  const Job job = small_job({.dp = 2, .tp = 4});
  const CrewResult golden = train(job, {});
  for (const bool sequence_parallel : {false, true}) {
    for (const int tp : {1, 2, 4}) {
      for (const int dp : {1, 2}) {
        expect_same(job, {.dp = dp, .tp = tp, .sequence_parallel = sequence_parallel}, golden);
      }
    }
  }
}

TEST_F(Layouts, ContextParallelDegreesChangeNoBit) {
  const Job job = small_job({.dp = 2, .tp = 2, .cp = 2});
  const CrewResult golden = train(job, {});
  for (const bool sequence_parallel : {false, true}) {
    for (const int tp : {1, 2}) {
      for (const int cp : {1, 2}) {
        expect_same(job, {.dp = 2, .tp = tp, .cp = cp, .sequence_parallel = sequence_parallel}, golden);
      }
    }
  }
}

TEST_F(Layouts, ThreeContextLanesAreAddedByTheirOwnTree) {
  Job job = small_job({.dp = 3, .tp = 1, .cp = 3});
  job.model.sequence = 18;
  const CrewResult golden = train(job, {});
  expect_same(job, {.dp = 3, .cp = 3}, golden);
  expect_same(job, {.dp = 1, .cp = 3}, golden);
}

TEST_F(Layouts, ShardedStatesChangeNoBit) {
  // With an odd width the tensors end inside of grains and the shards inside of tensors.
  for (const Lanes& lanes : {Lanes{.dp = 4}, Lanes{.dp = 4, .tp = 2, .cp = 2}, Lanes{.dp = 3}}) {
    Job job = small_job(lanes);
    job.model.width = 20;
    const CrewResult golden = train(job, {});
    for (const int zero : {1, 2, 3}) {
      for (const int dp : {1, lanes.dp == 4 ? 2 : 3, lanes.dp}) expect_same(job, {.dp = dp, .zero = zero}, golden);
      expect_same(job, {.dp = lanes.dp, .tp = lanes.tp, .cp = lanes.cp, .zero = zero}, golden);
    }
    expect_same(job, {.dp = lanes.dp, .zero = 3, .prefetch = true}, golden);
  }
}

TEST_F(Layouts, PipelinesOfEveryScheduleChangeNoBit) {
  for (const Lanes& lanes : {Lanes{.dp = 2}, Lanes{.dp = 2, .tp = 2}}) {
    Job job = small_job(lanes);
    job.model.layers = 4;
    const CrewResult golden = train(job, {});
    for (const int pp : {2, 3, 4}) {
      for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
        expect_same(job, {.dp = 2, .tp = lanes.tp, .pp = pp, .schedule = schedule}, golden);
        expect_same(job, {.dp = 1, .pp = pp, .schedule = schedule}, golden);
      }
    }
    for (const int dp : {1, 2}) {
      expect_same(job, {.dp = dp, .pp = 2, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2}, golden);
    }
    expect_same(job, {.dp = 2, .tp = lanes.tp, .pp = 2, .zero = 3, .sequence_parallel = true}, golden);
  }
}

TEST_F(Layouts, RecomputeAndBucketsChangeNoBit) {
  for (const Lanes& lanes : {Lanes{.dp = 2}, Lanes{.dp = 2, .tp = 2, .cp = 2}}) {
    const Job job = small_job(lanes);
    const CrewResult golden = train(job, {});
    expect_same(job, {.dp = 2, .pp = 2, .recompute = Recompute::layer}, golden);
    expect_same(job, {.dp = 2, .zero = 3, .recompute = Recompute::layer, .prefetch = true}, golden);
    for (const std::int64_t bytes : {1, 5000, 1000000}) {
      for (const int zero : {0, 2})
        expect_same(job, {.dp = 2, .cp = lanes.cp, .zero = zero, .bucket_bytes = bytes}, golden);
    }
  }
}

// One model without lanes, by autograd and LibTorch's AdamW, beside the engine's.
class Plain {
 public:
  explicit Plain(const Job& job) : job_(job), whole_job_(job) {
    whole_job_.lanes = {.dp = job.lanes.dp};
    whole_job_.model.tied_embedding = false;
    whole_job_.precision = {};
    const Model model(whole_job_);
    DirectCompute compute;
    std::vector<Value> parameters;
    for (const Segment& segment : model.segments()) {
      parameters.push_back(*model.initial_parameters(compute, segment.index, job.seed));
    }
    reference_ = std::make_unique<ReferenceModel>(job, model, parameters);
    std::vector<at::Tensor> matrices;
    std::vector<at::Tensor> norms;
    for (auto& [name, tensor] : reference_->tensors()) (tensor.dim() >= 2 ? matrices : norms).push_back(tensor);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(matrices, std::make_unique<torch::optim::AdamWOptions>(options(job.optimizer.weight_decay)));
    groups.emplace_back(norms, std::make_unique<torch::optim::AdamWOptions>(options(0)));
    optimizer_ = std::make_unique<torch::optim::AdamW>(groups, options(0));
  }

  double step(const at::Tensor& tokens, double lr) {
    const at::AutoGradMode record(true);
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(lr);
    optimizer_->zero_grad();
    const at::Tensor loss = reference_->whole(tokens) / static_cast<double>(tokens.size(0) * job_.model.sequence);
    loss.backward();
    std::vector<at::Tensor> all;
    for (auto& [name, tensor] : reference_->tensors()) all.push_back(tensor);
    torch::nn::utils::clip_grad_norm_(all, job_.optimizer.clip);
    optimizer_->step();
    return loss.item<double>();
  }
  at::Tensor tensor(const std::string& name) { return reference_->tensor(name).detach(); }

 private:
  torch::optim::AdamWOptions options(double decay) const {
    const OptimizerSpec& o = job_.optimizer;
    return torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.epsilon).weight_decay(decay);
  }

  const Job& job_;
  Job whole_job_;
  std::unique_ptr<ReferenceModel> reference_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
};

// All rows of the global batch.
at::Tensor batch_of(const Job& job, const Sampler& sampler, const SamplerState& at, const Value& text) {
  at::Tensor tokens = at::empty({sampler.rows(), job.model.sequence + 1}, at::kByte);
  const auto bytes = text.as<std::uint8_t>();
  for (std::int64_t row = 0; row < sampler.rows(); ++row) {
    const std::int64_t sample = sampler.sample_at(at, row);
    FD_CHECK(sample >= 0, "the test's batches are full");
    std::copy_n(bytes.data() + sample * job.model.sequence, job.model.sequence + 1,
                tokens.data_ptr<std::uint8_t>() + row * (job.model.sequence + 1));
  }
  return tokens;
}

// How far the engine may be from the plain fp32 model: of the loss of any step, and of the mean parameter at the end.
struct Closeness {
  double loss = 3e-4;
  double parameters = 5e-5;
};

void expect_plain_training(Job job, const Value& text, const Closeness& closeness = {}) {
  job.model.dropout = 0;
  job.data.last_batch = LastBatch::drop;
  job.steps = 50;
  const Model model(job);
  const Result<Sampler> sampler = Sampler::make(job, text.count());
  const CrewResult engine = Crew(job, {}, model, *sampler, text).run(job.steps);
  Plain plain(job);
  SamplerState at = sampler->start();
  for (int step = 1; step <= job.steps; ++step) {
    const double loss = plain.step(batch_of(job, *sampler, at, text), learning_rate(job.optimizer, job.steps, step));
    ASSERT_NEAR(static_cast<double>(engine.losses[static_cast<std::size_t>(step - 1)]), loss, closeness.loss)
        << "step " << step;
    at = sampler->advance(at);
  }
  EXPECT_LT(engine.losses.back(), 3.0F);
  for (const Piece& piece : model.pieces()) {
    if (piece.lanes == 0 || (piece.kind == PieceKind::head && model.tied())) continue;
    const std::string whole = model.segments()[piece.shared].name;
    for (int lane = 0; lane < job.lanes.tp; ++lane) {
      const Segment& segment = model.segments()[piece.lanes + static_cast<std::size_t>(lane)];
      for (const TensorSpec& spec : segment.tensors) {
        const std::string name = spec.name.substr(segment.name.size() + 1);
        const LanePart part = lane_part({.name = name.c_str(), .shape = spec.shape},
                                        static_cast<std::uint32_t>(job.lanes.tp), static_cast<std::uint32_t>(lane));
        const at::Tensor theirs = plain.tensor(whole + "." + name).contiguous().view({-1});
        const auto ours = engine.held.back().at(spec.name).value.as<float>();
        double distance = 0;
        for (std::size_t i = 0; i < ours.size(); ++i) {
          const auto index = part.whole_index(static_cast<std::int64_t>(i));
          distance += std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs.data_ptr<float>()[index]));
        }
        EXPECT_LT(distance / static_cast<double>(ours.size()), closeness.parameters) << spec.name;
      }
    }
  }
}

TEST_F(Layouts, FiftyStepsOfTensorLanesFollowThePlainModel) {
  expect_plain_training(small_job({.dp = 2, .tp = 2}), text_);
}

TEST_F(Layouts, FiftyStepsOfContextLanesFollowThePlainModel) {
  expect_plain_training(small_job({.dp = 1, .tp = 2, .cp = 2}), text_);
}

TEST_F(Layouts, FiftyStepsOfTiedEmbeddingsFollowThePlainModel) {
  for (const Lanes& lanes : {Lanes{.dp = 1}, Lanes{.dp = 1, .tp = 2, .cp = 2}}) {
    Job job = small_job(lanes);
    job.model.tied_embedding = true;
    expect_plain_training(job, text_);
  }
}

// A parameter of 16 bits is off by up to half a step, 2^-9 of it for bf16 and 2^-12 for fp16, and so is every
// activation: the logits are sums of such products and keep the relative error of one of them, so a loss of 5.5 nats
// is off by some 2^-9 * 5.5 = 0.01, and the path of training adds to it. Updates are of fp32 masters, each up to the
// learning rate; where rounding turns the sign of a gradient near zero, one step is off by twice that. So masters stay
// within a few hundredths of what 50 steps of 0.003 can move them, 0.15.
TEST_F(Layouts, FiftyStepsOfSixteenBitsFollowThePlainModelAsFarAsTheirRoundingLets) {
  Job job = small_job({.dp = 1, .tp = 2, .cp = 2});
  job.model.tied_embedding = true;
  job.precision.parameters = Precision::bf16;
  expect_plain_training(job, text_, {.loss = 0.04, .parameters = 0.004});
  job.precision = {.parameters = Precision::fp16, .scaler = {.dynamic = true, .initial_scale = 0x1p10}};
  expect_plain_training(job, text_, {.loss = 0.01, .parameters = 0.001});
}

}  // namespace
}  // namespace firedrill
