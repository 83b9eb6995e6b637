#include "engine/train/state.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "engine/base/rng.h"
#include "engine/train/schedule.h"
#include "engine/train/shards.h"

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

StateGroup segment_group(const Segment& segment, const Holdings& holdings, ShardKind shard, std::string_view prefix) {
  const Holder& holder = holdings.holder(segment);
  StateGroup group{.name = fmt::format("{}{}", prefix, segment.name),
                   .shard = shard,
                   .dtype = DType::f32,
                   .count = segment.count,
                   .replicated = true,
                   .holder = holder.index,
                   .holders = holder.count,
                   .tensors = {},
                   .value = {}};
  for (const TensorSpec& tensor : segment.tensors)
    group.tensors.push_back(
        {.name = fmt::format("{}{}", prefix, tensor.name), .shape = tensor.shape, .offset = tensor.offset});
  return group;
}

// The flat shard of a segment: for each own dp lane the run of each tensor that lies in its shard.
StateGroup shard_group(const Segment& segment, const Holdings& holdings, ShardKind shard, std::string_view prefix) {
  const Holder& holder = holdings.holder_of_shard(segment);
  const Range held = holdings.shard(segment);
  StateGroup group{.name = fmt::format("{}{}", prefix, segment.name),
                   .shard = shard,
                   .dtype = DType::f32,
                   .count = held.count(),
                   .replicated = true,
                   .holder = holder.index,
                   .holders = holder.count,
                   .tensors = {},
                   .value = {}};
  const LaneRange lanes = holdings.shard_lanes(segment);
  for (int lane = lanes.begin; lane < lanes.end; ++lane) {
    const Range of_lane = shard_range(segment.count, holdings.dp_lanes, lane);
    for (const TensorSpec& tensor : segment.tensors) {
      const std::int64_t begin = std::max(of_lane.begin, tensor.offset);
      const std::int64_t end = std::min(of_lane.end, tensor.offset + tensor.count());
      if (begin >= end) continue;
      group.tensors.push_back({.name = fmt::format("{}{}", prefix, tensor.name),
                               .shape = tensor.shape,
                               .offset = begin - held.begin,
                               .begin = begin - tensor.offset,
                               .length = end - begin});
    }
  }
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

StateGroup random_group(const Holdings& holdings) {
  const LaneRange lanes = holdings.place.dp_lanes;
  StateGroup group{.name = "extra/random",
                   .shard = ShardKind::extra,
                   .dtype = DType::i64,
                   .count = 2 * lanes.count(),
                   .replicated = true,
                   .holder = holdings.of_random.index,
                   .holders = holdings.of_random.count,
                   .tensors = {},
                   .value = {}};
  for (int lane = lanes.begin; lane < lanes.end; ++lane)
    group.tensors.push_back(
        {.name = fmt::format("random.lane.{}", lane), .shape = Shape{2}, .offset = 2 * (lane - lanes.begin)});
  return group;
}

}  // namespace

std::vector<Value> initial_moments(const Model& model, const Holdings& holdings) {
  std::vector<Value> moments(model.segments().size());
  for (const std::size_t i : holdings.segments) {
    const Segment& segment = model.segments()[i];
    moments[i] = zeros_of(holdings.shards_moments() ? holdings.shard(segment).count() : segment.count);
  }
  return moments;
}

Result<TrainingState> initial_state(Compute& compute, const Job& job, const Model& model, const SamplerState& sampler,
                                    const Holdings& holdings, std::span<const Value> moments) {
  TrainingState state;
  state.segments.resize(model.segments().size());
  for (const std::size_t i : holdings.segments) {
    FD_TRY(Value parameters, model.initial_parameters(compute, i, job.seed));
    const Range shard = holdings.shard(model.segments()[i]);
    if (holdings.shards_masters()) {
      FD_TRY(parameters, cut_shard(compute, parameters, shard));
    }
    state.segments[i] = {.parameters = std::move(parameters), .exp_avg = moments[i], .exp_avg_sq = moments[i]};
  }
  state.sampler = sampler;
  state.scaler = initial_scaler(job.precision.scaler);
  const LaneRange lanes = holdings.place.dp_lanes;
  for (int lane = lanes.begin; lane < lanes.end; ++lane) {
    const std::uint64_t key = Stream(job.seed, stream_id("lane.random", static_cast<std::uint64_t>(lane))).at(0);
    state.lanes.push_back({.lane = lane, .random = {.key = key, .counter = 0}});
  }
  return state;
}

StateView blank_view(const Model& model, const Holdings& holdings) {
  StateView view;
  const auto add = [&](ShardKind shard, std::string_view prefix, bool sharded) {
    for (const std::size_t i : holdings.segments) {
      const Segment& segment = model.segments()[i];
      view.push_back(sharded ? shard_group(segment, holdings, shard, prefix)
                             : segment_group(segment, holdings, shard, prefix));
    }
  };
  add(ShardKind::model, "", holdings.shards_masters());
  add(ShardKind::optimizer, "optimizer.exp_avg.", holdings.shards_moments());
  add(ShardKind::optimizer, "optimizer.exp_avg_sq.", holdings.shards_moments());
  view.push_back(counter_group());
  view.push_back(random_group(holdings));
  return view;
}

void fill_view(const Job& job, const Holdings& holdings, const TrainingState& state, StateView& view) {
  const std::size_t held = holdings.segments.size();
  FD_CHECK(view.size() == 3 * held + 2, "a view of {} groups for a state of {} segments", view.size(), held);
  for (std::size_t i = 0; i < held; ++i) {
    const OptimizerState& segment = state.segments[holdings.segments[i]];
    view[i].value = segment.parameters;
    view[held + i].value = segment.exp_avg;
    view[2 * held + i].value = segment.exp_avg_sq;
  }
  const CounterWords words = words_of(job, state);
  view[3 * held].value = Value::copy_of(DType::i64, Shape{static_cast<std::int64_t>(counter_names.size())},
                                        std::as_bytes(std::span(&words, 1)));
  MutableValue random(DType::i64, Shape{static_cast<std::int64_t>(2 * state.lanes.size())});
  for (std::size_t i = 0; i < state.lanes.size(); ++i) {
    random.as<std::uint64_t>()[2 * i] = state.lanes[i].random.key;
    random.as<std::uint64_t>()[2 * i + 1] = state.lanes[i].random.counter;
  }
  view[3 * held + 1].value = std::move(random).freeze();
}

Result<TrainingState> state_from(const Job& job, const Model& model, const StateView& view, const Holdings& holdings) {
  const std::size_t held = holdings.segments.size();
  FD_CHECK(view.size() == 3 * held + 2, "a restored list of {} groups", view.size());
  TrainingState state;
  state.segments.resize(model.segments().size());
  for (std::size_t i = 0; i < held; ++i) {
    state.segments[holdings.segments[i]] = {
        .parameters = view[i].value, .exp_avg = view[held + i].value, .exp_avg_sq = view[2 * held + i].value};
  }
  const auto words = scalars_as<CounterWords>(view[3 * held].value.bytes());
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
  const auto random = view[3 * held + 1].value.as<std::uint64_t>();
  const LaneRange lanes = holdings.place.dp_lanes;
  for (int lane = lanes.begin; lane < lanes.end; ++lane) {
    const std::size_t at = 2 * static_cast<std::size_t>(lane - lanes.begin);
    state.lanes.push_back({.lane = lane, .random = {.key = random[at], .counter = random[at + 1]}});
  }
  return state;
}

}  // namespace firedrill
