#include "engine/train/trainer.h"

#include <bit>

#include "engine/train/schedule.h"

namespace firedrill {

Trainer::Trainer(const Job& job, const Layout& layout, const Model& model, const Sampler& sampler, Value text,
                 Parts& parts, TrainingState state)
    : job_(job),
      model_(model),
      sampler_(sampler),
      text_(std::move(text)),
      parts_(parts),
      holdings_(holdings_of(job, layout, model, parts.position.rank)),
      groups_(groups_of(job, layout, parts.position.rank)),
      state_(std::move(state)),
      parameters_(state_.segments),
      context_{.job = job,
               .model = model,
               .place = holdings_.place,
               .groups = groups_,
               .parts = parts,
               .parameters = parameters_},
      network_(make_network(context_)),
      view_(blank_view(model, holdings_)) {
  for (const int rank : groups_.model.ranks) model_group_.push_back(holdings_of(job, layout, model, rank));
}

const StateView& Trainer::view() {
  if (!view_fresh_) fill_view(job_, holdings_, state_, view_);
  view_fresh_ = true;
  return view_;
}

Result<StepReport> Trainer::step() {
  TrainingState next = state_;
  const BatchShape batch = sampler_.batch_at(state_.sampler);
  const double tokens = static_cast<double>(batch.valid_rows) * job_.model.sequence;
  const float factor = static_cast<float>(static_cast<double>(state_.scaler.scale) / tokens);
  GradientSums gradients(model_, holdings_, parts_.compute);
  FD_TRY_VOID(compute(factor, gradients));
  for (LaneState& lane : next.lanes) lane.random.counter += static_cast<std::uint64_t>(job_.batch.accumulation);
  StepReport report;
  {
    const PhaseScope scope(parts_.position, Phase::exchange);
    FD_TRY(StepSums sums, gradients.exchange(context_));
    FD_TRY(const Agreement agreed, agree(sums));
    const GradientDecision decision =
        decide_gradients(gradient_norm(agreed.squares), static_cast<double>(state_.scaler.scale), job_.optimizer.clip);
    report = {.loss = static_cast<float>(static_cast<double>(agreed.loss.as<float>()[0]) / tokens),
              .norm = decision.norm,
              .skipped = decision.overflow};
    if (!decision.overflow) FD_TRY_VOID(update(decision, std::move(sums), next));
  }
  next.scaler = scaler_after_step(job_.precision.scaler, next.scaler, report.skipped);
  next.sampler = sampler_.advance(next.sampler);
  ++next.counters.step;
  state_ = std::move(next);
  view_fresh_ = false;
  return report;
}

Result<Trainer::InFlight> Trainer::draw(std::size_t lane, int micro, float factor) {
  InFlight flight{
      .unit = {.lane = lane, .random = state_.lanes[lane].random, .factor = factor}, .inputs = {}, .head = {}};
  flight.unit.random.counter += static_cast<std::uint64_t>(micro);
  flight.inputs.resize(holdings_.stage.end - holdings_.stage.begin);
  if (!holdings_.first_stage && !holdings_.last_stage) return flight;
  const PhaseScope scope(parts_.position, Phase::input);
  const int number = state_.lanes[lane].lane;
  const Value samples = sampler_.rows_for(state_.sampler, number, micro);
  if (holdings_.speaks_for_lane()) {
    for (const std::int64_t sample : samples.as<std::int64_t>()) {
      if (sample < 0) continue;
      emit(parts_.observer, parts_.position,
           {.kind = EventKind::sample, .a = state_.sampler.epoch, .b = sample, .c = number});
    }
  }
  FD_TRY(const Value drawn,
         run_kernel(parts_.compute, gather_kernel, GatherScalars{.sequence = job_.model.sequence}, {text_, samples}));
  flight.unit.tokens = drawn[0];
  flight.unit.mask = drawn[1];
  return flight;
}

Status Trainer::compute(float factor, GradientSums& sums) {
  for (std::size_t lane = 0; lane < state_.lanes.size(); ++lane) {
    for (int micro = 0; micro < job_.batch.accumulation; ++micro) {
      FD_TRY(InFlight flight, draw(lane, micro, factor));
      FD_TRY_VOID(forward(flight, sums));
      FD_TRY_VOID(backward(flight, sums));
    }
  }
  return {};
}

Status Trainer::forward(InFlight& flight, GradientSums& sums) {
  const PhaseScope scope(parts_.position, Phase::forward);
  const Stage stage = holdings_.stage;
  Value x;
  for (std::size_t i = stage.begin; i < stage.end; ++i) {
    const Piece& piece = model_.pieces()[i];
    flight.inputs[i - stage.begin] = x;
    if (piece.kind == PieceKind::head) {
      FD_TRY(flight.head, network_->loss(piece, flight.unit, x, sums));
    } else {
      FD_TRY(x, network_->forward(piece, flight.unit, x));
    }
  }
  return {};
}

Status Trainer::backward(InFlight& flight, GradientSums& sums) {
  const PhaseScope scope(parts_.position, Phase::backward);
  const Stage stage = holdings_.stage;
  Value gradient;
  for (std::size_t i = stage.end; i-- > stage.begin;) {
    const Piece& piece = model_.pieces()[i];
    const Value input = std::move(flight.inputs[i - stage.begin]);
    if (piece.kind == PieceKind::head) {
      FD_TRY(gradient, network_->loss_backward(piece, flight.unit, input, flight.head, sums));
    } else {
      FD_TRY(gradient, network_->backward(piece, flight.unit, input, std::move(gradient), sums));
    }
  }
  return {};
}

Result<Trainer::Agreement> Trainer::agree(const StepSums& sums) {
  std::vector<Value> own;
  for (const std::size_t segment : holdings_.segments) {
    FD_TRY(own.emplace_back(), sum_of_squares(parts_.compute, sums.segments[segment]));
  }
  if (groups_.model.size() == 1) return Agreement{.squares = std::move(own), .loss = sums.loss};
  if (holdings_.last_stage) own.push_back(sums.loss);
  FD_TRY(const Value all,
         parts_.collectives.all_gather(groups_.model, Value::pack(own), context_.call("gradient_norm")));
  Agreement agreed{.squares = std::vector<Value>(model_.segments().size()), .loss = {}};
  for (std::size_t member = 0; member < model_group_.size(); ++member) {
    const Holdings& held = model_group_[member];
    const Value& told = all[member];
    const std::size_t expected = held.segments.size() + (held.last_stage ? 1 : 0);
    if (!told || !told.is_pack() || told.parts().size() != expected) {
      return Error{.code = Code::mismatch,
                   .message = fmt::format("rank {} told other than {} sums", groups_.model.ranks[member], expected)};
    }
    for (std::size_t i = 0; i < held.segments.size(); ++i) agreed.squares[held.segments[i]] = told[i];
    if (held.last_stage) agreed.loss = told[held.segments.size()];
  }
  return agreed;
}

Status Trainer::update(const GradientDecision& decision, StepSums sums, TrainingState& next) {
  const PhaseScope scope(parts_.position, Phase::optimizer);
  // Nobody else may hold the buffers if they are to be updated in place.
  for (OptimizerState& state : state_.segments) state = {};
  for (StateGroup& group : view_) group.value = {};
  ++next.counters.optimizer_steps;
  ++next.counters.schedule_step;
  const AdamWStep step{.lr = learning_rate(job_.optimizer, job_.steps, next.counters.schedule_step),
                       .step = next.counters.optimizer_steps,
                       .gradient_scale = decision.gradient_scale};
  for (const std::size_t i : holdings_.segments) {
    FD_TRY(next.segments[i], adamw_update(parts_.compute, job_.optimizer, step, std::move(next.segments[i]),
                                          std::move(sums.segments[i]), model_.segments()[i].decay_ranges));
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
