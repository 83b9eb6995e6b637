#include "engine/train/trainer.h"

#include <bit>

#include "engine/comm/tree.h"
#include "engine/train/schedule.h"

namespace firedrill {

Trainer::Trainer(const Job& job, const Layout& layout, const Model& model, const Sampler& sampler, Value text,
                 Parts& parts, TrainingState state)
    : job_(job),
      model_(model),
      sampler_(sampler),
      text_(std::move(text)),
      parts_(parts),
      groups_(groups_of(job, layout, parts.position.rank)),
      state_(std::move(state)),
      view_(blank_view(job, model, dp_lanes_of(job, layout, parts.position.rank))) {}

Call Trainer::call(std::string_view purpose) const {
  return Call{.purpose = purpose, .deadline = parts_.clock.now() + job_.cluster.deadline};
}

const StateView& Trainer::view() {
  if (!view_fresh_) fill_view(job_, state_, view_);
  view_fresh_ = true;
  return view_;
}

Result<Value> Trainer::add(Value left, Value right) {
  if (!left) return right;
  Value inputs[] = {std::move(left), std::move(right)};
  return parts_.compute.run(add_kernel, {}, inputs);
}

Result<StepReport> Trainer::step() {
  TrainingState next = state_;
  const BatchShape batch = sampler_.batch_at(state_.sampler);
  const double tokens = static_cast<double>(batch.valid_rows) * job_.model.sequence;
  const float factor = static_cast<float>(static_cast<double>(state_.scaler.scale) / tokens);
  std::vector<LaneGradients> lanes;
  for (LaneState& lane : next.lanes) {
    FD_TRY(LaneGradients computed, compute_lane(lane, factor));
    lanes.push_back(std::move(computed));
  }
  FD_TRY(Value sums, exchange(std::move(lanes)));
  FD_TRY(const GradientDecision decision, decide(sums));
  const double loss = static_cast<double>(sums.parts().back().as<float>()[0]) / tokens;
  if (!decision.overflow) FD_TRY_VOID(update(decision, std::move(sums), next));
  next.scaler = scaler_after_step(job_.precision.scaler, next.scaler, decision.overflow);
  next.sampler = sampler_.advance(next.sampler);
  ++next.counters.step;
  state_ = std::move(next);
  view_fresh_ = false;
  return StepReport{.loss = static_cast<float>(loss), .norm = decision.norm, .skipped = decision.overflow};
}

Result<Trainer::MicroBatch> Trainer::draw(int lane, int micro) {
  const PhaseScope scope(parts_.position, Phase::input);
  const Value samples = sampler_.rows_for(state_.sampler, lane, micro);
  for (const std::int64_t sample : samples.as<std::int64_t>()) {
    if (sample < 0) continue;
    emit(parts_.observer, parts_.position,
         {.kind = EventKind::sample, .a = state_.sampler.epoch, .b = sample, .c = lane});
  }
  FD_TRY(const Value drawn,
         run_kernel(parts_.compute, gather_kernel, GatherScalars{.sequence = job_.model.sequence}, {text_, samples}));
  return MicroBatch{.tokens = drawn[0], .mask = drawn[1]};
}

Result<Trainer::LaneGradients> Trainer::compute_lane(LaneState& lane, float factor) {
  LaneGradients sums;
  sums.segments.resize(model_.segments().size());
  for (int micro = 0; micro < job_.batch.accumulation; ++micro) {
    FD_TRY(const MicroBatch batch, draw(lane.lane, micro));
    FD_TRY_VOID(accumulate(batch, lane.random, factor, sums));
    ++lane.random.counter;
  }
  return sums;
}

Status Trainer::accumulate(const MicroBatch& batch, const RandomCounter& random, float factor, LaneGradients& sums) {
  const std::size_t head = model_.head();
  std::vector<Value> inputs(head + 1);  // of each segment
  inputs[0] = batch.tokens;
  const Targets targets{.tokens = batch.tokens, .row_mask = batch.mask};
  {
    const PhaseScope scope(parts_.position, Phase::forward);
    for (std::size_t i = 0; i < head; ++i) {
      FD_TRY(inputs[i + 1], model_.forward(parts_.compute, i, state_.segments[i].parameters, inputs[i], random));
    }
    FD_TRY(Value loss, model_.loss(parts_.compute, state_.segments[head].parameters, inputs[head], targets));
    FD_TRY(sums.loss, add(std::move(sums.loss), std::move(loss)));
  }
  const PhaseScope scope(parts_.position, Phase::backward);
  FD_TRY(SegmentGradients gradients,
         model_.loss_backward(parts_.compute, state_.segments[head].parameters, inputs[head], targets, factor));
  FD_TRY(sums.segments[head], add(std::move(sums.segments[head]), std::move(gradients.parameters)));
  for (std::size_t i = head; i-- > 0;) {
    FD_TRY(SegmentGradients earlier, model_.backward(parts_.compute, i, state_.segments[i].parameters, inputs[i],
                                                     random, std::move(gradients.input)));
    inputs[i] = {};
    gradients = std::move(earlier);
    FD_TRY(sums.segments[i], add(std::move(sums.segments[i]), std::move(gradients.parameters)));
  }
  return {};
}

Result<Value> Trainer::exchange(std::vector<LaneGradients> lanes) {
  const PhaseScope scope(parts_.position, Phase::exchange);
  std::vector<Value> packs;
  for (LaneGradients& lane : lanes) {
    lane.segments.push_back(std::move(lane.loss));
    packs.push_back(Value::pack(lane.segments));
    lane.segments.clear();
  }
  return parts_.collectives.all_reduce(groups_.dp, packs, ReduceOp::sum, call("gradients"));
}

Result<GradientDecision> Trainer::decide(const Value& sums) {
  const PhaseScope scope(parts_.position, Phase::exchange);
  std::vector<Value> squares;
  for (const Value& gradients : sums.parts().first(model_.segments().size())) {
    FD_TRY(Value square, sum_of_squares(parts_.compute, gradients));
    squares.push_back(std::move(square));
  }
  return decide_gradients(gradient_norm(squares), static_cast<double>(state_.scaler.scale), job_.optimizer.clip);
}

Status Trainer::update(const GradientDecision& decision, Value sums, TrainingState& next) {
  const PhaseScope scope(parts_.position, Phase::optimizer);
  // Nobody else may hold the buffers if they are to be updated in place.
  state_.segments.clear();
  for (StateGroup& group : view_) group.value = {};
  ++next.counters.optimizer_steps;
  ++next.counters.schedule_step;
  const AdamWStep step{.lr = learning_rate(job_.optimizer, job_.steps, next.counters.schedule_step),
                       .step = next.counters.optimizer_steps,
                       .gradient_scale = decision.gradient_scale};
  for (std::size_t i = 0; i < next.segments.size(); ++i) {
    FD_TRY(next.segments[i], adamw_update(parts_.compute, job_.optimizer, step, std::move(next.segments[i]), sums[i],
                                          model_.segments()[i].decay_ranges));
  }
  return {};
}

Digest Trainer::announce(const StepReport& report) {
  const Digest digest = digest_of_state(view());
  emit(parts_.observer, parts_.position,
       {.kind = EventKind::step_done,
        .step = state_.counters.step,
        .a = report.skipped ? 1 : 0,
        .b = std::bit_cast<std::int32_t>(report.loss),
        .digest = digest});
  describe_state(parts_.observer, view(), digest);
  return digest;
}

}  // namespace firedrill
