#include "engine/train/state.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "engine/base/rng.h"
#include "engine/train/schedule.h"

namespace firedrill {
namespace {

// The replicated numbers as they lie in the group "extra/counters": one i64 each, in this order.
struct CounterWords {
  std::int64_t step;
  std::int64_t optimizer_steps;
  std::int64_t schedule_step;
  std::int64_t micro_batches;
  std::int64_t sampler_epoch;
  std::int64_t sampler_cursor;
  std::int64_t sampler_epoch_seed;
  std::int64_t scaler_scale;  // bits of the float
  std::int64_t scaler_growth_tracker;
  std::int64_t group_lr;  // bits of the double: the rate of the next step, from the job's schedule
  std::int64_t group_weight_decay;
  std::int64_t group_beta1;
  std::int64_t group_beta2;
};
constexpr std::array<std::string_view, 13> counter_names = {"progress.step",
                                                            "optimizer.step",
                                                            "schedule.step",
                                                            "window.micro_batches",
                                                            "sampler.epoch",
                                                            "sampler.cursor",
                                                            "sampler.epoch_seed",
                                                            "scaler.scale",
                                                            "scaler.growth_tracker",
                                                            "optimizer.group.lr",
                                                            "optimizer.group.weight_decay",
                                                            "optimizer.group.beta1",
                                                            "optimizer.group.beta2"};
static_assert(sizeof(CounterWords) == counter_names.size() * sizeof(std::int64_t));

CounterWords words_of(const Job& job, const TrainingState& state) {
  const OptimizerSpec& optimizer = job.optimizer;
  const double lr =
      learning_rate(optimizer, job.steps, std::min<std::int64_t>(state.counters.schedule_step + 1, job.steps));
  return CounterWords{.step = state.counters.step,
                      .optimizer_steps = state.counters.optimizer_steps,
                      .schedule_step = state.counters.schedule_step,
                      .micro_batches = state.counters.micro_batches,
                      .sampler_epoch = state.sampler.epoch,
                      .sampler_cursor = state.sampler.cursor,
                      .sampler_epoch_seed = static_cast<std::int64_t>(state.sampler.epoch_seed),
                      .scaler_scale = std::bit_cast<std::int32_t>(state.scaler.scale),
                      .scaler_growth_tracker = state.scaler.growth_tracker,
                      .group_lr = std::bit_cast<std::int64_t>(lr),
                      .group_weight_decay = std::bit_cast<std::int64_t>(optimizer.weight_decay),
                      .group_beta1 = std::bit_cast<std::int64_t>(optimizer.beta1),
                      .group_beta2 = std::bit_cast<std::int64_t>(optimizer.beta2)};
}

StateGroup segment_group(const Segment& segment, ShardKind shard, std::string_view prefix, Value value) {
  StateGroup group{.name = fmt::format("{}{}", prefix, segment.name),
                   .shard = shard,
                   .dtype = DType::f32,
                   .count = segment.count,
                   .replicated = true,
                   .tensors = {},
                   .value = std::move(value)};
  for (const TensorSpec& tensor : segment.tensors)
    group.tensors.push_back(
        {.name = fmt::format("{}{}", prefix, tensor.name), .shape = tensor.shape, .offset = tensor.offset});
  return group;
}

StateGroup counter_group() {
  StateGroup group{.name = "extra/counters",
                   .shard = ShardKind::extra,
                   .dtype = DType::i64,
                   .count = counter_names.size(),
                   .replicated = true,
                   .tensors = {},
                   .value = {}};
  for (std::size_t i = 0; i < counter_names.size(); ++i)
    group.tensors.push_back(
        {.name = std::string(counter_names[i]), .shape = Shape{1}, .offset = static_cast<std::int64_t>(i)});
  return group;
}

StateGroup random_group(const LaneRange& lanes) {
  StateGroup group{.name = "extra/random",
                   .shard = ShardKind::extra,
                   .dtype = DType::i64,
                   .count = 2 * lanes.count(),
                   .replicated = false,
                   .tensors = {},
                   .value = {}};
  for (int lane = lanes.begin; lane < lanes.end; ++lane)
    group.tensors.push_back(
        {.name = fmt::format("random.lane.{}", lane), .shape = Shape{2}, .offset = 2 * (lane - lanes.begin)});
  return group;
}

LaneRange lanes_of(const TrainingState& state) {
  if (state.lanes.empty()) return {};
  return LaneRange{.begin = state.lanes.front().lane, .end = state.lanes.back().lane + 1};
}

}  // namespace

Result<TrainingState> initial_state(Compute& compute, const Job& job, const Model& model, const SamplerState& sampler,
                                    const LaneRange& lanes) {
  TrainingState state;
  for (std::size_t i = 0; i < model.segments().size(); ++i) {
    FD_TRY(Value parameters, model.initial_parameters(compute, i, job.seed));
    const Value zeros = zeros_like(parameters);
    state.segments.push_back({.parameters = std::move(parameters), .exp_avg = zeros, .exp_avg_sq = zeros});
  }
  state.sampler = sampler;
  state.scaler = initial_scaler(job.precision.scaler);
  for (int lane = lanes.begin; lane < lanes.end; ++lane) {
    const std::uint64_t key = Stream(job.seed, stream_id("lane.random", static_cast<std::uint64_t>(lane))).at(0);
    state.lanes.push_back({.lane = lane, .random = {.key = key, .counter = 0}});
  }
  return state;
}

StateView blank_view(const Job&, const Model& model, const LaneRange& lanes) {
  StateView view;
  for (const Segment& segment : model.segments()) view.push_back(segment_group(segment, ShardKind::model, "", {}));
  for (const Segment& segment : model.segments())
    view.push_back(segment_group(segment, ShardKind::optimizer, "optimizer.exp_avg.", {}));
  for (const Segment& segment : model.segments())
    view.push_back(segment_group(segment, ShardKind::optimizer, "optimizer.exp_avg_sq.", {}));
  view.push_back(counter_group());
  view.push_back(random_group(lanes));
  return view;
}

StateView view_of(const Job& job, const Model& model, const TrainingState& state) {
  StateView view = blank_view(job, model, lanes_of(state));
  fill_view(job, state, view);
  return view;
}

void fill_view(const Job& job, const TrainingState& state, StateView& view) {
  const std::size_t segments = state.segments.size();
  FD_CHECK(view.size() == 3 * segments + 2, "a view of {} groups for a state of {} segments", view.size(), segments);
  for (std::size_t i = 0; i < segments; ++i) {
    view[i].value = state.segments[i].parameters;
    view[segments + i].value = state.segments[i].exp_avg;
    view[2 * segments + i].value = state.segments[i].exp_avg_sq;
  }
  const CounterWords words = words_of(job, state);
  view[3 * segments].value = Value::copy_of(DType::i64, Shape{static_cast<std::int64_t>(counter_names.size())},
                                            std::as_bytes(std::span(&words, 1)));
  MutableValue random(DType::i64, Shape{static_cast<std::int64_t>(2 * state.lanes.size())});
  for (std::size_t i = 0; i < state.lanes.size(); ++i) {
    random.as<std::uint64_t>()[2 * i] = state.lanes[i].random.key;
    random.as<std::uint64_t>()[2 * i + 1] = state.lanes[i].random.counter;
  }
  view[3 * segments + 1].value = std::move(random).freeze();
}

Result<TrainingState> state_from(const Job& job, const Model& model, const StateView& view, const LaneRange& lanes) {
  const std::size_t segments = model.segments().size();
  FD_CHECK(view.size() == 3 * segments + 2, "a restored list of {} groups", view.size());
  TrainingState state;
  for (std::size_t i = 0; i < segments; ++i) {
    state.segments.push_back(
        {.parameters = view[i].value, .exp_avg = view[segments + i].value, .exp_avg_sq = view[2 * segments + i].value});
  }
  const auto words = scalars_as<CounterWords>(view[3 * segments].value.bytes());
  state.counters = {.step = words.step,
                    .optimizer_steps = words.optimizer_steps,
                    .schedule_step = words.schedule_step,
                    .micro_batches = words.micro_batches};
  state.sampler = {.epoch = words.sampler_epoch,
                   .cursor = words.sampler_cursor,
                   .epoch_seed = static_cast<std::uint64_t>(words.sampler_epoch_seed)};
  state.scaler = {.scale = std::bit_cast<float>(static_cast<std::int32_t>(words.scaler_scale)),
                  .growth_tracker = words.scaler_growth_tracker};
  if (state.counters.step < 0 || state.counters.step > job.steps || !(state.scaler.scale > 0)) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("the restored state says step {} of {} and loss scale {}", state.counters.step,
                                        job.steps, state.scaler.scale)};
  }
  const auto random = view[3 * segments + 1].value.as<std::uint64_t>();
  for (int lane = lanes.begin; lane < lanes.end; ++lane) {
    const std::size_t at = 2 * static_cast<std::size_t>(lane - lanes.begin);
    state.lanes.push_back({.lane = lane, .random = {.key = random[at], .counter = random[at + 1]}});
  }
  return state;
}

}  // namespace firedrill
