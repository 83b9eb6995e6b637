// PlainTraining: a job trained the ordinary way, to hold the engine against. One model without lanes, the whole batch
// at once, LibTorch's autograd, its clipping and its AdamW; the same samples in the same order, the same rates, the
// same masks of dropout. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "engine/model/initial.h"
#include "engine/model/lane_shapes.h"
#include "engine/model/reference_model.h"
#include "engine/train/crew.h"
#include "engine/train/schedule.h"

namespace firedrill {

class PlainTraining {
 public:
  PlainTraining(const Job& job, const Model& model, const Sampler& sampler, const Value& text)
      : job_(job), model_(model), sampler_(sampler), text_(text), at_(sampler.start()), whole_job_(job) {
    whole_job_.lanes = {.dp = job.lanes.dp};
    const Model whole(whole_job_);
    DirectCompute compute;
    std::vector<Value> parameters;
    for (const Segment& segment : whole.segments()) {
      parameters.push_back(*whole.initial_parameters(compute, segment.index, job.seed));
    }
    reference_ = std::make_unique<ReferenceModel>(whole_job_, whole, parameters);
    std::vector<at::Tensor> matrices;
    std::vector<at::Tensor> norms;
    for (auto& [name, tensor] : reference_->tensors()) (tensor.dim() >= 2 ? matrices : norms).push_back(tensor);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(matrices, std::make_unique<torch::optim::AdamWOptions>(options(job.optimizer.weight_decay)));
    groups.emplace_back(norms, std::make_unique<torch::optim::AdamWOptions>(options(0)));
    optimizer_ = std::make_unique<torch::optim::AdamW>(groups, options(0));
  }

  // The mean loss of the batch.
  double step() {
    ++step_;
    const at::AutoGradMode record(true);
    for (auto& group : optimizer_->param_groups()) {
      group.options().set_lr(learning_rate(job_.optimizer, job_.steps, step_));
    }
    optimizer_->zero_grad();
    const at::Tensor tokens = batch();
    if (job_.model.dropout > 0) draw_masks();
    const at::Tensor loss = reference_->whole(tokens) / static_cast<double>(tokens.size(0) * job_.model.sequence);
    loss.backward();
    std::vector<at::Tensor> all;
    for (auto& [name, tensor] : reference_->tensors()) all.push_back(tensor);
    torch::nn::utils::clip_grad_norm_(all, job_.optimizer.clip);
    optimizer_->step();
    at_ = sampler_.advance(at_);
    return loss.item<double>();
  }

  // The mean distance of a tensor of the engine's from the part of the plain one that it is.
  double distance(const Segment& segment, const TensorSpec& spec, std::span<const float> ours) const {
    std::string whole = spec.name;
    LanePart part{.rows = spec.count(), .whole_rows = spec.count(), .columns = 1, .whole_columns = 1};
    if (segment.tp_lane >= 0) {
      const std::string name = spec.name.substr(segment.name.size() + 1);
      whole = segment.name.substr(0, segment.name.find(".tp.")) + "." + name;
      part = lane_part({.name = name.c_str(), .shape = spec.shape}, static_cast<std::uint32_t>(job_.lanes.tp),
                       static_cast<std::uint32_t>(segment.tp_lane));
    }
    const at::Tensor theirs = reference_->tensor(whole).detach().contiguous();
    double sum = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const auto index = part.whole_index(static_cast<std::int64_t>(i));
      sum += std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs.data_ptr<float>()[index]));
    }
    return sum / static_cast<double>(ours.size());
  }

 private:
  torch::optim::AdamWOptions options(double decay) const {
    const OptimizerSpec& o = job_.optimizer;
    return torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.epsilon).weight_decay(decay);
  }

  // Calls visit(dp lane, micro-batch) in the order in which batch() lays their rows.
  template <class Visit>
  void each_unit(Visit visit) const {
    for (int lane = 0; lane < job_.lanes.dp; ++lane) {
      for (int micro = 0; micro < job_.batch.accumulation; ++micro) visit(lane, micro);
    }
  }

  // All rows of the global batch.
  at::Tensor batch() const {
    at::Tensor tokens = at::empty({sampler_.rows(), job_.model.sequence + 1}, at::kByte);
    auto* to = tokens.mutable_data_ptr<std::uint8_t>();
    each_unit([&](int lane, int micro) {
      const Value samples = sampler_.rows_for(at_, lane, micro);
      for (const std::int64_t sample : samples.as<std::int64_t>()) {
        FD_CHECK(sample >= 0, "the batches of this comparison are full");
        to = std::copy_n(text_.as<std::uint8_t>().data() + sample * job_.model.sequence, job_.model.sequence + 1, to);
      }
    });
    return tokens;
  }

  // What the engine's counters draw for this step, each unit and each chunk of it from its own stream.
  void draw_masks() {
    for (const Piece& piece : model_.pieces()) {
      if (piece.kind == PieceKind::head) continue;
      std::vector<at::Tensor> units;
      each_unit([&](int lane, int micro) {
        LaneScalars s;
        const std::uint64_t key = Stream(job_.seed, stream_id("lane.random", static_cast<std::uint64_t>(lane))).at(0);
        s.counter = static_cast<std::uint64_t>((step_ - 1) * job_.batch.accumulation + micro);
        s.drop_threshold = static_cast<std::uint32_t>(std::floor(job_.model.dropout * 65536.0 + 0.5));
        s.keep_scale_bits = std::bit_cast<std::uint32_t>(static_cast<float>(1.0 / (1.0 - job_.model.dropout)));
        units.push_back(unit_mask(s, key + (piece.shared + 1) * 0x9E3779B97F4A7C15ULL));
      });
      const std::string layer = "layers." + std::to_string(piece.layer);
      const std::string names[] = {"embed", layer + ".attention", layer + ".mlp"};
      reference_->masks[names[static_cast<std::size_t>(piece.kind)]] = at::cat(units);
    }
  }
  at::Tensor unit_mask(LaneScalars s, std::uint64_t key) const {
    const Lanes& lanes = job_.lanes;
    at::Tensor mask = at::ones({job_.batch.lane_micro_batch, job_.model.sequence, job_.model.width});
    for (int cp = 0; cp < lanes.cp; ++cp) {
      const LaneSequence sequence(job_.model.sequence, lanes.cp, cp);
      const std::int64_t tokens = sequence.size / lanes.tp;
      for (int tp = 0; tp < lanes.tp; ++tp) {
        s.key = key + static_cast<std::uint64_t>(cp * lanes.tp + tp) * 0xD1B54A32D192ED03ULL;
        at::Tensor chunk = at::ones({mask.size(0), tokens, mask.size(2)});
        Dropout(s).apply(floats_of(chunk), floats_of(chunk));
        std::vector<std::int64_t> places;
        for (std::int64_t t = 0; t < tokens; ++t) places.push_back(sequence.position(tp * tokens + t));
        mask.index_copy_(1, at::tensor(places), chunk);
      }
    }
    return mask;
  }

  const Job& job_;
  const Model& model_;
  const Sampler& sampler_;
  Value text_;
  SamplerState at_;
  int step_ = 0;
  Job whole_job_;
  std::unique_ptr<ReferenceModel> reference_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
};

// The engine on one rank and the plain training agree at each of `steps` steps on the loss (nats), and at the end on
// every parameter in the mean. Both are far below what one step changes, and what sums of fp32 in another order give:
// where a gradient is all rounding, AdamW still makes a step of the size of the rate of it.
inline void expect_plain_training(Job job, const Value& text, int steps) {
  job.steps = steps;
  const Model model(job);
  const Result<Sampler> sampler = Sampler::make(job, text.count());
  ASSERT_TRUE(sampler) << describe(sampler.error());
  const CrewResult engine = Crew(job, {}, model, *sampler, text).run(steps);
  PlainTraining plain(job, model, *sampler, text);
  for (int step = 1; step <= steps; ++step) {
    ASSERT_NEAR(static_cast<double>(engine.losses[static_cast<std::size_t>(step - 1)]), plain.step(), 3e-4)
        << job.name << ", step " << step;
  }
  EXPECT_LT(engine.losses.back(), engine.losses.front() - 0.5F) << job.name << " learns";
  for (const Segment& segment : model.segments()) {
    for (const TensorSpec& spec : segment.tensors) {
      const auto ours = engine.held.back().at(spec.name).value.as<float>();
      EXPECT_LT(plain.distance(segment, spec, ours), 5e-5) << job.name << ": " << spec.name;
    }
  }
}

}  // namespace firedrill
