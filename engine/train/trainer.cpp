#include "engine/train/trainer.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <utility>

#include "engine/job/pipeline.h"
#include "engine/train/schedule.h"
#include "engine/train/shards.h"

namespace firedrill {
namespace {

// A micro-batch of rows that count for nothing.
Value no_samples(const Job& job) {
  return Value::copy_of(std::vector<std::int64_t>(static_cast<std::size_t>(job.batch.lane_micro_batch), -1));
}

}  // namespace

Trainer::Trainer(const Job& job, const Layout& layout, const Model& model, const Sampler& sampler, Value text,
                 Parts& parts, TrainingState state, const TrainingRules& rules, const DataSource& source,
                 const RankShape* shape)
    : job_(job),
      layout_(layout),
      model_(model),
      sampler_(sampler),
      text_(parts.compute, std::move(text), job.model.sequence),
      source_(source),
      parts_(parts),
      own_shape_(shape != nullptr ? std::nullopt
                                  : std::optional(rank_shape_of(job, layout, model, parts.position.rank))),
      shape_(shape != nullptr ? *shape : *own_shape_),
      holdings_(shape_.holdings),
      groups_(shape_.groups),
      state_(std::move(state)),
      parameters_(job, holdings_, state_.segments),
      context_{.job = job,
               .model = model,
               .place = holdings_.place,
               .groups = groups_,
               .parts = parts,
               .parameters = parameters_,
               .rules = rules},
      network_(make_network(context_)),
      view_(shape_.view) {
  for (const int rank : groups_.model.ranks)
    model_group_.push_back(rank == parts.position.rank ? holdings_ : holdings_of(job, layout, model, rank));
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
  if (!parameters_.derived()) FD_TRY_VOID(parameters_.derive(context_));
  activations_ = {};
  FD_TRY_VOID(compute(factor, gradients));
  for (LaneState& lane : next.lanes) lane.random.counter += static_cast<std::uint64_t>(job_.batch.accumulation);
  StepReport report;
  {
    const PhaseScope scope = enter(Phase::exchange);
    FD_TRY(StepSums sums, gradients.exchange(context_));
    account(gradients);
    FD_TRY(const Agreement agreed, agree(sums));
    const GradientDecision decision =
        decide_gradients(gradient_norm(agreed.squares), static_cast<double>(state_.scaler.scale), job_.optimizer.clip);
    report = {.loss = static_cast<float>(static_cast<double>(agreed.loss.as<float>()[0]) / tokens),
              .norm = decision.norm,
              .skipped = context_.rules.skips_update(decision.overflow, agreed.overflow_here)};
    if (!report.skipped) FD_TRY_VOID(update(decision, std::move(sums), next));
  }
  next.scaler = scaler_after_step(job_.precision.scaler, next.scaler, report.skipped);
  next.sampler = sampler_.advance(next.sampler);
  ++next.counters.step;
  state_ = std::move(next);
  view_fresh_ = false;
  if (!report.skipped) {
    const PhaseScope scope = enter(Phase::optimizer);
    FD_TRY_VOID(parameters_.derive(context_));
  }
  return report;
}

Result<Trainer::InFlight> Trainer::draw(int unit, float factor) {
  const auto lane = static_cast<std::size_t>(unit / job_.batch.accumulation);
  const int micro = unit % job_.batch.accumulation;
  InFlight flight;
  flight.number = unit;
  flight.unit = {.lane = lane, .random = state_.lanes[lane].random, .factor = factor};
  flight.unit.random.counter += static_cast<std::uint64_t>(micro);
  flight.inputs.resize(model_.pieces().size());
  // The tokens go in at the first stage and are the last one's targets; a router looks at which rows are there.
  if (!holdings_.first_stage && !holdings_.last_stage && job_.model.experts == 0) return flight;
  const PhaseScope scope = enter(Phase::input);
  const int number = state_.lanes[lane].lane;
  const Value samples = samples_of(number, micro);
  if (holdings_.speaks_for_lane()) {
    for (const std::int64_t sample : samples.as<std::int64_t>()) {
      if (sample < 0) continue;
      emit(parts_.observer, parts_.position,
           {.kind = EventKind::sample, .a = state_.sampler.epoch, .b = sample, .c = number});
    }
  }
  FD_TRY(const Value drawn, read(samples));
  flight.unit.tokens = drawn[0];
  flight.unit.mask = drawn[1];
  activations_.take(bytes_held(drawn));
  return flight;
}

Value Trainer::samples_of(int lane, int micro) const {
  const int drawn_lane = context_.rules.lane_drawn(holdings_, lane);
  const BatchShape batch = sampler_.batch_at(state_.sampler);
  const bool dealt = batch.valid_rows == batch.rows || context_.rules.draws_short_batch();
  if (drawn_lane < 0 || !dealt || !context_.rules.completes_window(micro, leaving_)) return no_samples(job_);
  return sampler_.rows_for(state_.sampler, drawn_lane, micro);
}

PhaseScope Trainer::enter(Phase phase) {
  last_phase_ = phase;
  return PhaseScope(parts_.position, phase);
}

Result<Value> Trainer::read(const Value& samples) {
  FD_TRY(Value rows, (source_.input ? *source_.input : text_).rows(samples));
  if (source_.digests) FD_TRY_VOID(source_.digests->verify(samples, rows));
  return rows;
}

Status Trainer::compute(float factor, GradientSums& sums) {
  const int units = static_cast<int>(state_.lanes.size()) * job_.batch.accumulation;
  std::vector<InFlight> flights(static_cast<std::size_t>(units));
  for (const PipelineAction& action : pipeline_actions(layout_, holdings_.place.pp, units)) {
    const Stage& stage = holdings_.stages[static_cast<std::size_t>(action.stage)];
    InFlight& flight = flights[static_cast<std::size_t>(action.unit)];
    if (!action.backward) {
      if (action.stage == 0) {
        FD_TRY(flight, draw(action.unit, factor));
      }
      FD_TRY_VOID(forward(stage, flight, sums));
    } else {
      FD_TRY_VOID(backward(stage, flight, action.unit == units - 1, sums));
      if (action.stage == 0) {
        activations_.let_go(bytes_held(flight.unit.tokens) + bytes_held(flight.unit.mask));
        flight = {};
      }
    }
  }
  return {};
}

// The state as it is held between steps, and the most of what a step needs.
void Trainer::account(const GradientSums& sums) {
  memory_ = {.parameters = parameters_.bytes(), .gradients = sums.bytes_peak(), .activations = activations_.peak()};
  for (const OptimizerState& segment : state_.segments) {
    if (holdings_.sixteen_bits) memory_.masters += bytes_held(segment.parameters);
    memory_.moments += bytes_held(segment.exp_avg) + bytes_held(segment.exp_avg_sq);
  }
}

int Trainer::neighbour(int step) const {
  const int size = groups_.pp.size();
  return (holdings_.place.pp + step + size) % size;
}

std::string Trainer::crossing(std::string_view what, const InFlight& flight, std::size_t piece) {
  return fmt::format("{}.{}.{}", what, flight.number, piece);
}

Status Trainer::gather(std::size_t piece, std::size_t behind, const Stage& stage) {
  FD_TRY_VOID(parameters_.gather(context_, model_.pieces()[piece]));
  if (!layout_.prefetch || behind < stage.begin || behind >= stage.end) return {};
  return parameters_.gather(context_, model_.pieces()[behind]);
}

Status Trainer::forward(const Stage& stage, InFlight& flight, GradientSums& sums) {
  const PhaseScope scope = enter(Phase::forward);
  Value x;
  if (!first(stage)) {
    FD_TRY(x, parts_.collectives.recv(groups_.pp, neighbour(-1),
                                      context_.call(crossing("activation", flight, stage.begin))));
  }
  for (std::size_t i = stage.begin; i < stage.end; ++i) {
    const Piece& piece = model_.pieces()[i];
    const std::int64_t in_hand = bytes_held(x);
    const bool second_of_layer = piece.kind == PieceKind::mlp || piece.kind == PieceKind::moe;
    const bool kept = !second_of_layer || layout_.recompute == Recompute::segment;
    if (kept) {
      flight.inputs[i] = x;
      activations_.take(in_hand);
    }
    FD_TRY_VOID(gather(i, i + 1, stage));
    if (piece.kind == PieceKind::head) {
      FD_TRY(flight.head, network_->loss(piece, flight.unit, x, sums));
      activations_.take(bytes_held(flight.head));
    } else {
      FD_TRY(x, network_->forward(piece, flight.unit, x));
      activations_.see(bytes_held(x) + (kept ? 0 : in_hand));
    }
    parameters_.release(piece);
  }
  if (last(stage)) return {};
  return parts_.collectives.send(groups_.pp, neighbour(1), x, context_.call(crossing("activation", flight, stage.end)));
}

Result<Value> Trainer::input_of(std::size_t piece, const Stage& stage, InFlight& flight) {
  if (flight.inputs[piece] || piece == 0) return std::move(flight.inputs[piece]);
  FD_TRY_VOID(gather(piece - 1, stage.end, stage));
  return network_->forward(model_.pieces()[piece - 1], flight.unit, flight.inputs[piece - 1]);
}

Status Trainer::backward(const Stage& stage, InFlight& flight, bool last_unit, GradientSums& sums) {
  const PhaseScope scope = enter(Phase::backward);
  Value gradient;
  if (!last(stage)) {
    FD_TRY(gradient, parts_.collectives.recv(groups_.pp_backward, neighbour(1),
                                             context_.call(crossing("activation.gradient", flight, stage.end))));
  }
  for (std::size_t i = stage.end; i-- > stage.begin;) {
    const Piece& piece = model_.pieces()[i];
    const bool kept = static_cast<bool>(flight.inputs[i]);
    FD_TRY(const Value input, input_of(i, stage, flight));
    const std::int64_t in_hand = bytes_held(gradient) + (kept ? 0 : bytes_held(input));
    FD_TRY_VOID(gather(i, i - 1, stage));
    if (piece.kind == PieceKind::head) {
      FD_TRY(gradient, network_->loss_backward(piece, flight.unit, input, flight.head, sums));
    } else {
      FD_TRY(gradient, network_->backward(piece, flight.unit, input, std::move(gradient), sums));
    }
    activations_.see(in_hand + bytes_held(gradient));
    if (kept) activations_.let_go(bytes_held(input));
    if (piece.kind == PieceKind::head) activations_.let_go(bytes_held(std::exchange(flight.head, {})));
    parameters_.release(piece);
    if (last_unit) FD_TRY_VOID(sums.complete(context_, piece, layout_.bucket_bytes));
  }
  if (first(stage)) return {};
  return parts_.collectives.send(groups_.pp_backward, neighbour(-1), gradient,
                                 context_.call(crossing("activation.gradient", flight, stage.begin)));
}

// Of the segments held, in order. Where gradients lie in shards, from the grains of all of them.
Result<std::vector<Value>> Trainer::own_squares(const StepSums& sums) {
  std::vector<Value> squares;
  if (!holdings_.shards_gradients()) {
    for (const std::size_t segment : holdings_.segments) {
      FD_TRY(squares.emplace_back(), sum_of_squares(parts_.compute, sums.segments[segment]));
    }
    return squares;
  }
  std::vector<Value> grains;
  for (const std::size_t segment : holdings_.segments) {
    FD_TRY(grains.emplace_back(), sums_of_grains(parts_.compute, sums.segments[segment]));
  }
  if (context_.rules.norm_spans_shards()) {
    FD_TRY(grains, join_shards(context_, holdings_.segments, grains, "gradient_norm.grains"));
  }
  for (const Value& whole : grains) {
    FD_TRY(squares.emplace_back(), sum_over_grains(parts_.compute, whole));
  }
  return squares;
}

Result<Trainer::Agreement> Trainer::agree(const StepSums& sums) {
  FD_TRY(std::vector<Value> own, own_squares(sums));
  const bool overflow_here = !std::isfinite(gradient_norm(own));
  if (groups_.model.size() == 1) {
    return Agreement{.squares = std::move(own), .loss = sums.loss, .overflow_here = overflow_here};
  }
  if (holdings_.last_stage) own.push_back(sums.loss);
  FD_TRY(const Value all,
         parts_.collectives.all_gather(groups_.model, Value::pack(own), context_.call("gradient_norm")));
  Agreement agreed{.squares = std::vector<Value>(model_.segments().size()), .loss = {}, .overflow_here = overflow_here};
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
  const PhaseScope scope = enter(Phase::optimizer);
  // Nobody else may hold the buffers if they are to be updated in place.
  for (OptimizerState& state : state_.segments) state = {};
  for (StateGroup& group : view_) group.value = {};
  ++next.counters.optimizer_steps;
  ++next.counters.schedule_step;
  const AdamWStep step{.lr = learning_rate(job_.optimizer, job_.steps, next.counters.schedule_step),
                       .step = next.counters.optimizer_steps,
                       .gradient_scale = decision.gradient_scale};
  std::vector<Value> shards;
  for (const std::size_t i : holdings_.segments) {
    if (!model_.segments()[i].tied || context_.rules.updates_tied_weights(holdings_)) {
      FD_TRY(next.segments[i], update_segment(i, step, std::move(next.segments[i]), std::move(sums.segments[i])));
    }
    shards.push_back(next.segments[i].parameters);
  }
  if (holdings_.shards_moments() == holdings_.shards_masters()) return {};
  FD_TRY(std::vector<Value> wholes, join_segments(context_, holdings_.segments, shards, "parameters.updated"));
  for (std::size_t i = 0; i < wholes.size(); ++i)
    next.segments[holdings_.segments[i]].parameters = std::move(wholes[i]);
  return {};
}

// Of what this rank updates: the whole segment, or its flat shard.
Result<OptimizerState> Trainer::update_segment(std::size_t segment, const AdamWStep& step, OptimizerState state,
                                               Value gradients) {
  const Segment& spec = model_.segments()[segment];
  Range range{.begin = 0, .end = spec.count};
  if (holdings_.shards_moments()) {
    range = holdings_.shard(spec);
    if (!holdings_.shards_gradients()) {
      FD_TRY(gradients, cut_shard(parts_.compute, gradients, range));
    }
    if (!holdings_.shards_masters()) {
      FD_TRY(state.parameters, cut_shard(parts_.compute, state.parameters, range));
    }
  }
  return adamw_update(parts_.compute, job_.optimizer, step, std::move(state), std::move(gradients), spec.decay_ranges,
                      range.begin);
}

Digest Trainer::announce(const StepReport& report) {
  const Digest digest = digest_of_state(view());
  emit(parts_.observer, parts_.position,
       {.kind = EventKind::step_done,
        .step = state_.counters.step,
        .a = report.skipped ? 1 : 0,
        .b = std::bit_cast<std::int32_t>(report.loss),
        .digest = digest});
  if (memory_ != memory_told_) {
    emit(parts_.observer, parts_.position,
         {.kind = EventKind::memory_used,
          .step = state_.counters.step,
          .a = memory_.persistent() + memory_.activations,
          .b = memory_.persistent(),
          .c = memory_.gradients});
    memory_told_ = memory_;
  }
  describe_state(parts_.observer, view(), digest);
  return digest;
}

}  // namespace firedrill
