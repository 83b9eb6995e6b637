// PlainTraining: a job trained the ordinary way, to hold the engine against. One fp32 model without lanes, the whole
// batch at once, LibTorch's autograd, its clipping and its AdamW; the same samples in the same order, the same rates,
// the same masks of dropout. What a mixture of experts shares with the engine is the definition: a source lane is a dp
// lane's micro-batch cut at the cp lanes, and tokens over an expert's capacity lose it there. For tests only.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "engine/model/initial.h"
#include "engine/model/lane_shapes.h"
#include "engine/model/moe_model.h"
#include "engine/model/reference_model.h"
#include "engine/model/reference_moe.h"
#include "engine/train/crew.h"
#include "engine/train/schedule.h"

namespace firedrill {

class PlainTraining {
 public:
  PlainTraining(const Job& job, const Model& model) : job_(job), model_(model), whole_job_(job) {
    whole_job_.lanes = {.dp = job.lanes.dp};
    whole_job_.model.tied_embedding = false;
    whole_job_.precision = {};
    const Model whole(whole_job_);
    DirectCompute compute;
    std::vector<Value> parameters;
    for (const Segment& segment : whole.segments()) {
      parameters.push_back(*whole.initial_parameters(compute, segment.index, job.seed));
    }
    reference_ = std::make_unique<ReferenceModel>(job, whole, parameters);
    std::map<std::string, at::Tensor> tensors;
    for (auto& [name, tensor] : reference_->tensors()) tensors[without_lane(name)] = tensor;
    if (job.model.tied_embedding) tensors.erase("head.output.weight");
    reference_->tensors() = tensors;
    std::vector<at::Tensor> matrices;
    std::vector<at::Tensor> norms;
    for (auto& [name, tensor] : tensors) (tensor.dim() >= 2 ? matrices : norms).push_back(tensor);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(matrices, std::make_unique<torch::optim::AdamWOptions>(options(job.optimizer.weight_decay)));
    groups.emplace_back(norms, std::make_unique<torch::optim::AdamWOptions>(options(0)));
    optimizer_ = std::make_unique<torch::optim::AdamW>(groups, options(0));
  }

  // Trains on these rows, which lie by dp lane and then by micro-batch. Returns their mean loss, without the balance
  // loss of experts. Without `update` the step is one that is skipped: it draws its masks and changes nothing.
  double step(const at::Tensor& tokens, bool update = true) {
    ++step_;
    const at::AutoGradMode record(true);
    optimizer_->zero_grad();
    if (job_.model.dropout > 0) draw_masks();
    const double count = static_cast<double>(tokens.size(0) * job_.model.sequence);
    at::Tensor balance = at::zeros({});
    at::Tensor x = reference_->embed(tokens);
    for (int layer = 0; layer < job_.model.layers; ++layer) {
      x = reference_->attention(layer, x);
      x = job_.model.experts > 0 ? mixture(layer, x, balance) : reference_->mlp(layer, x);
    }
    const at::Tensor loss = reference_->loss(x, tokens) / count;
    if (!update) return loss.item<double>();
    (loss + balance / count).backward();
    std::vector<at::Tensor> all;
    for (auto& [name, tensor] : reference_->tensors()) all.push_back(tensor);
    torch::nn::utils::clip_grad_norm_(all, job_.optimizer.clip);
    ++updates_;
    for (auto& group : optimizer_->param_groups()) {
      group.options().set_lr(learning_rate(job_.optimizer, job_.steps, updates_));
    }
    optimizer_->step();
    return loss.item<double>();
  }

  // The mean distance of a tensor of the engine's from the part of the plain one that it is.
  double distance(const Segment& segment, const TensorSpec& spec, std::span<const float> ours) const {
    LanePart part{.rows = spec.count(), .whole_rows = spec.count(), .columns = 1, .whole_columns = 1};
    if (segment.tp_lane >= 0) {
      const std::string name = spec.name.substr(segment.name.size() + 1);
      part = lane_part({.name = name.c_str(), .shape = spec.shape}, static_cast<std::uint32_t>(job_.lanes.tp),
                       static_cast<std::uint32_t>(segment.tp_lane));
    }
    const at::Tensor theirs = reference_->tensor(without_lane(spec.name)).detach().contiguous();
    double sum = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const auto index = part.whole_index(static_cast<std::int64_t>(i));
      sum += std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs.data_ptr<float>()[index]));
    }
    return sum / static_cast<double>(ours.size());
  }

 private:
  // "layers.0.attention.qkv.weight" of "layers.0.attention.tp.1.qkv.weight".
  static std::string without_lane(std::string name) {
    const std::size_t lane = name.find(".tp.");
    if (lane != std::string::npos) name.erase(lane, name.find('.', lane + 4) - lane);
    return name;
  }

  torch::optim::AdamWOptions options(double decay) const {
    const OptimizerSpec& o = job_.optimizer;
    return torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.epsilon).weight_decay(decay);
  }

  ReferenceExperts experts_of(const std::string& layer) const {
    ReferenceExperts weights{.router = reference_->tensor(layer + ".router.weight"), .gate_up = {}, .down = {}};
    for (int expert = 0; expert < job_.model.experts; ++expert) {
      const std::string name = layer + ".experts." + std::to_string(expert);
      weights.gate_up.push_back(reference_->tensor(name + ".gate_up.weight"));
      weights.down.push_back(reference_->tensor(name + ".down.weight"));
    }
    return weights;
  }

  // Norm, experts, dropout and residual. Adds to `balance` what the layer's routers lose.
  at::Tensor mixture(int layer, const at::Tensor& x, at::Tensor& balance) {
    const std::int64_t width = job_.model.width;
    const std::int64_t rows = job_.batch.lane_micro_batch;
    const std::string name = "layers." + std::to_string(layer);
    const ReferenceExperts weights = experts_of(name);
    const at::Tensor h = at::layer_norm(x, {width}, reference_->tensor(name + ".moe.norm.weight"),
                                        reference_->tensor(name + ".moe.norm.bias"), 1e-5);
    at::Tensor out = at::zeros_like(x);
    for (int cp = 0; cp < job_.lanes.cp; ++cp) {
      const LaneSequence lane(job_.model.sequence, job_.lanes.cp, cp);
      std::vector<std::int64_t> places;
      for (std::int64_t t = 0; t < lane.size; ++t) places.push_back(lane.position(t));
      const at::Tensor positions = at::tensor(places);
      std::vector<at::Tensor> units;
      for (std::int64_t row = 0; row < x.size(0); row += rows) {
        const at::Tensor source = h.narrow(0, row, rows).index_select(1, positions).reshape({-1, width});
        const std::int64_t tokens = source.size(0);
        const ReferenceMixture mixed =
            reference_mixture(job_.model, weights, source, expert_capacity(job_.model, tokens), at::ones({tokens}));
        balance = balance + mixed.balance;
        units.push_back(mixed.out.view({rows, lane.size, width}));
      }
      out = out.index_add(1, positions, at::cat(units));
    }
    const auto mask = reference_->masks.find(name + ".moe");
    return x + (mask == reference_->masks.end() ? out : out * mask->second);
  }

  // What the engine's counters draw for this step, each unit and each chunk of it from its own stream.
  void draw_masks() {
    for (const Piece& piece : model_.pieces()) {
      if (piece.kind == PieceKind::head) continue;
      std::vector<at::Tensor> units;
      for (int lane = 0; lane < job_.lanes.dp; ++lane) {
        const std::uint64_t key = Stream(job_.seed, stream_id("lane.random", static_cast<std::uint64_t>(lane))).at(0);
        for (int micro = 0; micro < job_.batch.accumulation; ++micro) {
          LaneScalars s;
          s.counter = static_cast<std::uint64_t>((step_ - 1) * job_.batch.accumulation + micro);
          s.drop_threshold = static_cast<std::uint32_t>(std::floor(job_.model.dropout * 65536.0 + 0.5));
          s.keep_scale_bits = std::bit_cast<std::uint32_t>(static_cast<float>(1.0 / (1.0 - job_.model.dropout)));
          units.push_back(unit_mask(s, key + (piece.shared + 1) * 0x9E3779B97F4A7C15ULL));
        }
      }
      reference_->masks[piece_name(piece.kind, piece.layer)] = at::cat(units);
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
  int step_ = 0;
  int updates_ = 0;
  Job whole_job_;
  std::unique_ptr<ReferenceModel> reference_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
};

// The global batches of a job, one after the other, as PlainTraining takes them.
class PlainBatches {
 public:
  PlainBatches(const Job& job, const Sampler& sampler, const Value& text)
      : job_(job), sampler_(sampler), text_(text), at_(sampler.start()) {}

  at::Tensor next() {
    const std::int64_t length = job_.model.sequence + 1;
    at::Tensor tokens = at::empty({sampler_.rows(), length}, at::kByte);
    auto* to = tokens.mutable_data_ptr<std::uint8_t>();
    for (int lane = 0; lane < job_.lanes.dp; ++lane) {
      for (int micro = 0; micro < job_.batch.accumulation; ++micro) {
        const Value samples = sampler_.rows_for(at_, lane, micro);
        for (const std::int64_t sample : samples.as<std::int64_t>()) {
          FD_CHECK(sample >= 0, "the batches of this comparison are full");
          to = std::copy_n(text_.as<std::uint8_t>().data() + sample * job_.model.sequence, length, to);
        }
      }
    }
    at_ = sampler_.advance(at_);
    return tokens;
  }

 private:
  const Job& job_;
  const Sampler& sampler_;
  const Value& text_;
  SamplerState at_;
};

// How far the engine may be from plain training. The bounds for fp32 are a few times what sums in another order give,
// measured as 5e-6 nats and 2e-7 for the largest of the shipped jobs, and far below what one step changes.
struct Closeness {
  double loss = 3e-5;        // of any step, in nats
  double parameters = 2e-6;  // of each tensor at the end, in the mean
  double learned = 0.5;      // what the loss must come down by, so that the two agree on something
};

// Which of its steps the engine updated in. A dynamic scale follows from that: it is lowered by each skipped step, and
// raised by so many good ones in a row.
inline std::vector<bool> updates_of(const Job& job, const CrewResult& engine) {
  const ScalerSpec& spec = job.precision.scaler;
  std::vector<bool> updates;
  std::int64_t before = 0;
  int good = 0;
  double scale = spec.dynamic ? spec.initial_scale : 1;
  for (const HeldRuns& held : engine.held) {
    const std::int64_t now = held.at("optimizer.step").value.as<std::int64_t>()[0];
    updates.push_back(now != before);
    before = now;
    good = updates.back() ? good + 1 : 0;
    if (spec.dynamic && !updates.back()) scale *= spec.backoff;
    if (spec.dynamic && good == spec.growth_interval) {
      scale *= spec.growth;
      good = 0;
    }
    const std::int64_t bits = held.at("scaler.scale").value.as<std::int64_t>()[0];
    EXPECT_EQ(std::bit_cast<float>(static_cast<std::int32_t>(bits)), static_cast<float>(scale));
  }
  return updates;
}

// The engine on one rank and the plain training agree at each of `steps` steps on the loss, and at the end on every
// parameter. A step that the engine skips is skipped by both. The largest distances go to the test's properties.
inline void expect_plain_training(Job job, const Value& text, int steps, const Closeness& closeness = {}) {
  job.steps = steps;
  const Model model(job);
  const Result<Sampler> sampler = Sampler::make(job, text.count());
  ASSERT_TRUE(sampler) << describe(sampler.error());
  const CrewResult engine = Crew(job, {}, model, *sampler, text).run(steps);
  const std::vector<bool> updates = updates_of(job, engine);
  PlainTraining plain(job, model);
  PlainBatches batches(job, *sampler, text);
  double loss_distance = 0;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const double distance = std::abs(static_cast<double>(engine.losses[i]) - plain.step(batches.next(), updates[i]));
    ASSERT_LT(distance, closeness.loss) << job.name << ", step " << i + 1;
    loss_distance = std::max(loss_distance, distance);
  }
  testing::Test::RecordProperty("loss", fmt::format("{:.1e}", loss_distance));
  EXPECT_LT(static_cast<double>(engine.losses.back()), static_cast<double>(engine.losses.front()) - closeness.learned)
      << job.name << " learns";
  std::map<std::string, double> farthest;  // "qkv.weight"
  for (const Segment& segment : model.segments()) {
    for (const TensorSpec& spec : segment.tensors) {
      const auto ours = engine.held.back().at(spec.name).value.as<float>();
      const double distance = plain.distance(segment, spec, ours);
      EXPECT_LT(distance, closeness.parameters) << job.name << ": " << spec.name;
      const std::string name = segment.kind == SegmentKind::router ? "router.weight" : spec.name;
      double& of_kind = farthest[name.substr(name.rfind('.', name.rfind('.') - 1) + 1)];
      of_kind = std::max(of_kind, distance);
    }
  }
  for (const auto& [name, distance] : farthest) testing::Test::RecordProperty(name, fmt::format("{:.1e}", distance));
}

}  // namespace firedrill
