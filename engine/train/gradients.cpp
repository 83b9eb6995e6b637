#include "engine/train/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/comm/tree.h"
#include "engine/train/halves.h"
#include "engine/train/lane_exchange.h"

namespace firedrill {
namespace {

using Pending = Result<std::unique_ptr<PendingReduction>>;

Pending done(Result<Value> result) {
  if (!result) return std::move(result).error();
  return Pending(std::make_unique<DoneReduction>(*std::move(result)));
}

// Over a group of dp lanes, at once or aside.
Pending all_reduce(const NetworkContext& context, const Group& group, std::span<const Value> lanes,
                   std::string_view purpose, bool aside) {
  Collectives& collectives = context.parts.collectives;
  const Call call = context.call(purpose);
  if (aside) return collectives.start_all_reduce(group, lanes, ReduceOp::sum, call);
  return done(collectives.all_reduce(group, lanes, ReduceOp::sum, call));
}

Pending reduce_scatter(const NetworkContext& context, const Group& group, std::span<const Value> lanes,
                       std::string_view purpose, bool aside) {
  Collectives& collectives = context.parts.collectives;
  const Call call = context.call(purpose);
  if (aside) return collectives.start_reduce_scatter(group, lanes, ReduceOp::sum, call);
  return done(collectives.reduce_scatter(group, lanes, ReduceOp::sum, call));
}

}  // namespace

GradientSums::GradientSums(const Model& model, const Holdings& holdings, Compute& compute)
    : model_(model), holdings_(holdings), compute_(compute) {
  const RankPlace& place = holdings.place;
  const auto lanes = static_cast<std::size_t>(place.dp_lanes.count());
  const auto cps = static_cast<std::size_t>(place.cp_lanes.count());
  const auto chunks = static_cast<std::size_t>(place.chunks.count());
  sums_.resize(static_cast<std::size_t>(place.expert_dp_lanes.count()));
  for (auto& of_lane : sums_) {
    of_lane.resize(model.accumulator_count());
    for (const Stage& stage : holdings.stages) {
      for (std::size_t i = stage.begin; i < stage.end; ++i) {
        for (const std::size_t own : accumulators_of(model.pieces()[i])) {
          of_lane[own].resize(segment_of(own).expert >= 0 ? static_cast<std::size_t>(place.expert_cp_lanes.count())
                              : shared(own)               ? cps * chunks
                                                          : cps);
        }
      }
    }
  }
  losses_.resize(lanes, Slots(holdings.last_stage ? cps : 0));
  totals_.resize(model.accumulator_count());
}

SegmentList GradientSums::accumulators_of(const Piece& piece) const {
  SegmentList list = holdings_.segments_of(piece);
  for (std::size_t& segment : list) segment = model_.accumulator(piece, segment);
  return list;
}

Status GradientSums::accumulate(Value& sum, Value more) {
  if (!sum) {
    sum = std::move(more);
    return {};
  }
  FD_TRY_VOID(widen_in_place(compute_, sum));
  FD_TRY_VOID(widen_in_place(compute_, more));
  Value inputs[] = {std::move(sum), std::move(more)};
  FD_TRY(sum, compute_.run(add_kernel, {}, inputs));
  return {};
}

Status GradientSums::add(std::size_t lane, std::size_t accumulator, std::size_t slot, Value gradient) {
  Value& sum = sums_[lane][accumulator][slot];
  const std::int64_t before = bytes_held(sum);
  FD_TRY_VOID(accumulate(sum, std::move(gradient)));
  bytes_.take(bytes_held(sum) - before);
  return {};
}

Status GradientSums::add_loss(std::size_t lane, std::size_t slot, Value loss) {
  return accumulate(losses_[lane][slot], std::move(loss));
}

Status GradientSums::complete(const NetworkContext& context, const Piece& piece, std::int64_t bucket_bytes) {
  if (bucket_bytes == 0) return {};
  for (const std::size_t own : accumulators_of(piece)) {
    waiting_.push_back(own);
    waiting_bytes_ += segment_of(own).count * static_cast<std::int64_t>(sizeof(float));
  }
  if (waiting_bytes_ < bucket_bytes) return {};
  const PhaseScope scope(context.parts.position, Phase::exchange);
  waiting_bytes_ = 0;
  std::vector<std::size_t> accumulators = std::exchange(waiting_, {});
  std::ranges::sort(accumulators);
  return start(context, accumulators, false, true);
}

Result<StepSums> GradientSums::exchange(const NetworkContext& context) {
  std::vector<std::size_t> rest;
  for (std::size_t own = 0; own < model_.accumulator_count(); ++own) {
    const bool held = !sums_.front()[own].empty();
    if (held && std::ranges::find(exchanged_, own) == exchanged_.end()) rest.push_back(own);
  }
  FD_TRY_VOID(start(context, rest, holdings_.last_stage, !started_.empty()));
  for (Started& started : started_) {
    for (const std::unique_ptr<PendingReduction>& part : started.parts) FD_TRY_VOID(part->advance());
  }
  for (Started& started : started_) FD_TRY_VOID(finish(started));
  FD_TRY_VOID(join_uses(context));
  totals_.resize(model_.segments().size());
  for (Value& total : totals_) FD_TRY_VOID(narrow_in_place(compute_, total, model_.dtype()));
  return StepSums{.segments = std::move(totals_), .loss = std::move(loss_)};
}

Status GradientSums::widen(const Bucket& bucket) {
  if (!holdings_.sixteen_bits) return {};
  for (auto& of_lane : sums_) {
    for (const std::size_t own : bucket.accumulators) {
      for (Value& sum : of_lane[own]) FD_TRY_VOID(widen_in_place(compute_, sum));
    }
  }
  return {};
}

// Embedding first, then head, on one rank or on both ends of the pipeline.
Status GradientSums::join_uses(const NetworkContext& context) {
  const LaneRange lanes = holdings_.place.tp_lanes;
  if (!model_.tied() || (!holdings_.first_stage && !holdings_.last_stage)) return {};
  const std::size_t first = model_.pieces().front().lanes + static_cast<std::size_t>(lanes.begin);
  const std::size_t second = model_.segments().size() + static_cast<std::size_t>(lanes.begin);
  const auto count = static_cast<std::size_t>(lanes.count());
  const auto uses = [&](std::size_t begin) { return Value::pack(std::span(totals_).subspan(begin, count)); };
  Value of_embedding = holdings_.first_stage ? uses(first) : Value();
  Value of_head = holdings_.last_stage ? uses(second) : Value();
  if (context.groups.tied.size() > 1) {
    const Value& own = holdings_.first_stage ? of_embedding : of_head;
    FD_TRY(const Value both,
           context.parts.collectives.all_gather(context.groups.tied, own, context.call("gradients.tied")));
    of_embedding = both[0];
    of_head = both[1];
  }
  for (std::size_t lane = 0; lane < count; ++lane) {
    Value inputs[] = {of_embedding[lane], of_head[lane]};
    FD_TRY(totals_[first + lane], compute_.run(add_kernel, {}, inputs));
  }
  return {};
}

Status GradientSums::start(const NetworkContext& context, const std::vector<std::size_t>& accumulators, bool loss,
                           bool aside) {
  const Groups& groups = context.groups;
  const RankPlace& place = holdings_.place;
  Bucket bucket{
      .loss = loss, .lanes = static_cast<std::size_t>(place.dp_lanes.count()), .cp = &groups.cp, .dp = &groups.dp};
  Bucket experts{.lanes = static_cast<std::size_t>(place.expert_dp_lanes.count()),
                 .cp = &groups.expert_cp,
                 .dp = &groups.expert_dp};
  bucket.accumulators.reserve(accumulators.size());
  for (const std::size_t own : accumulators) {
    if (segment_of(own).expert < 0) {
      bucket.accumulators.push_back(own);
    } else if (std::ranges::any_of(sums_, [&](const auto& lane) { return context.rules.joins_reduction(lane[own]); })) {
      experts.accumulators.push_back(own);
    } else {
      exchanged_.push_back(own);
      totals_[own] = sums_.front()[own].front();
    }
  }
  FD_TRY_VOID(start(context, std::move(bucket), aside));
  return start(context, std::move(experts), aside);
}

Status GradientSums::start(const NetworkContext& context, Bucket bucket, bool aside) {
  if (bucket.accumulators.empty() && !bucket.loss) return {};
  exchanged_.insert(exchanged_.end(), bucket.accumulators.begin(), bucket.accumulators.end());
  const std::int64_t accumulators = bytes_in(bucket);
  FD_TRY_VOID(widen(bucket));
  const std::int64_t widened = bytes_in(bucket);
  bytes_.let_go(accumulators);
  bytes_.take(widened);
  if (!model_.whole()) {
    FD_TRY_VOID(reduce_chunks(context, bucket));
    FD_TRY_VOID(reduce_cp(context, bucket));
  }
  context.rules.order_exchange(holdings_, bucket.accumulators);
  const std::int64_t on_their_way = bytes_in(bucket);
  bytes_.let_go(widened);
  bytes_.take(on_their_way);
  Started& started = started_.emplace_back(Started{.bucket = std::move(bucket), .parts = {}, .bytes = on_their_way});
  return holdings_.shards_gradients() ? scatter_dp(context, started, aside) : reduce_dp(context, started, aside);
}

std::int64_t GradientSums::bytes_in(const Bucket& bucket) const {
  std::int64_t bytes = 0;
  for (const auto& of_lane : sums_) {
    for (const std::size_t own : bucket.accumulators) {
      for (const Value& sum : of_lane[own]) bytes += bytes_held(sum);
    }
  }
  return bytes;
}

// Over the tp chunks of each cp lane, of what all tp lanes share.
Status GradientSums::reduce_chunks(const NetworkContext& context, const Bucket& bucket) {
  if (std::ranges::none_of(bucket.accumulators, [this](std::size_t own) { return shared(own); })) return {};
  if (holdings_.place.chunks.count() == context.job.lanes.tp) return reduce_chunks_here(context, bucket);
  const auto chunks = static_cast<std::size_t>(holdings_.place.chunks.count());
  std::vector<Value> packs;
  for (std::size_t t = 0; t < chunks; ++t) {
    std::vector<Value> parts;
    for (std::size_t lane = 0; lane < bucket.lanes; ++lane) {
      auto& of_lane = sums_[lane];
      for (const std::size_t own : bucket.accumulators) {
        if (!shared(own)) continue;
        for (std::size_t slot = t; slot < of_lane[own].size(); slot += chunks) {
          parts.push_back(std::move(of_lane[own][slot]));
        }
      }
    }
    packs.push_back(Value::pack(parts));
  }
  FD_TRY(const Value reduced, context.parts.collectives.all_reduce(context.groups.tp, packs, ReduceOp::sum,
                                                                   context.call("gradients.chunks")));
  FD_TRY_VOID(check_like(reduced, packs.front(), "gradients.chunks"));
  std::size_t next = 0;
  for (std::size_t lane = 0; lane < bucket.lanes; ++lane) {
    auto& of_lane = sums_[lane];
    for (const std::size_t own : bucket.accumulators) {
      if (!shared(own)) continue;
      of_lane[own].resize(of_lane[own].size() / chunks);
      for (Value& sum : of_lane[own]) sum = reduced[next++];
    }
  }
  return {};
}

Status GradientSums::reduce_chunks_here(const NetworkContext& context, const Bucket& bucket) {
  const auto chunks = static_cast<std::size_t>(context.job.lanes.tp);
  for (std::size_t lane = 0; lane < bucket.lanes; ++lane) {
    auto& of_lane = sums_[lane];
    for (const std::size_t own : bucket.accumulators) {
      if (!shared(own)) continue;
      Slots& slots = of_lane[own];
      Slots by_cp;
      for (std::size_t first = 0; first < slots.size(); first += chunks) {
        std::vector<Value> lanes;
        for (std::size_t t = 0; t < chunks; ++t) lanes.push_back(std::move(slots[first + t]));
        FD_TRY(by_cp.emplace_back(), add_tree(compute_, std::move(lanes), ReduceOp::sum));
      }
      slots = std::move(by_cp);
    }
  }
  return {};
}

GradientSums::SlotList GradientSums::of_lane(std::size_t lane, const Bucket& bucket) {
  SlotList all;
  for (const std::size_t own : bucket.accumulators) all.push_back(&sums_[lane][own]);
  if (bucket.loss) all.push_back(&losses_[lane]);
  return all;
}

Status GradientSums::reduce_cp(const NetworkContext& context, const Bucket& bucket) {
  if (bucket.cp->size() == 1) {
    for (std::size_t lane = 0; lane < bucket.lanes; ++lane) {
      for (Slots* slots : of_lane(lane, bucket)) {
        if (slots->size() == 1) continue;
        std::vector<Value> lanes(std::make_move_iterator(slots->begin()), std::make_move_iterator(slots->end()));
        FD_TRY(Value sum, add_tree(compute_, std::move(lanes), ReduceOp::sum));
        slots->assign(1, std::move(sum));
      }
    }
    return {};
  }
  const auto cps = static_cast<std::size_t>(bucket.cp->lanes[static_cast<std::size_t>(bucket.cp->me)].count());
  std::vector<Value> packs;
  for (std::size_t c = 0; c < cps; ++c) {
    std::vector<Value> parts;
    for (std::size_t lane = 0; lane < bucket.lanes; ++lane) {
      for (Slots* slots : of_lane(lane, bucket)) parts.push_back(std::move((*slots)[c]));
    }
    packs.push_back(Value::pack(parts));
  }
  FD_TRY(const Value reduced,
         context.parts.collectives.all_reduce(*bucket.cp, packs, ReduceOp::sum, context.call("gradients.cp")));
  FD_TRY_VOID(check_like(reduced, packs.front(), "gradients.cp"));
  std::size_t next = 0;
  for (std::size_t lane = 0; lane < bucket.lanes; ++lane) {
    for (Slots* slots : of_lane(lane, bucket)) slots->assign(1, reduced[next++]);
  }
  return {};
}

Status GradientSums::reduce_dp(const NetworkContext& context, Started& started, bool aside) {
  Slots packs;
  for (std::size_t lane = 0; lane < started.bucket.lanes; ++lane) {
    boost::container::small_vector<Value, 16> parts;
    for (Slots* slots : of_lane(lane, started.bucket)) parts.push_back(std::move(slots->front()));
    packs.push_back(Value::pack(parts));
  }
  const std::vector<std::size_t>& all = started.bucket.accumulators;
  // Of several on the way each has a name of its own.
  const std::string purpose = aside && !all.empty() ? "gradients." + segment_of(all.front()).name : "gradients";
  FD_TRY(started.parts.emplace_back(), all_reduce(context, *started.bucket.dp, packs, purpose, aside));
  return {};
}

Status GradientSums::scatter_dp(const NetworkContext& context, Started& started, bool aside) {
  for (const std::size_t own : started.bucket.accumulators) {
    std::vector<Value> lanes;
    for (std::size_t lane = 0; lane < started.bucket.lanes; ++lane) {
      lanes.push_back(std::move(sums_[lane][own].front()));
    }
    const std::string purpose = "gradients." + segment_of(own).name;
    FD_TRY(started.parts.emplace_back(), reduce_scatter(context, *started.bucket.dp, lanes, purpose, aside));
  }
  if (!started.bucket.loss) return {};
  std::vector<Value> losses;
  for (Slots& slots : losses_) losses.push_back(std::move(slots.front()));
  FD_TRY(started.parts.emplace_back(), all_reduce(context, *started.bucket.dp, losses, "loss", aside));
  return {};
}

// Trees are fp32, and of a segment this rank has all elements or its shard.
Status GradientSums::check_sums(const Bucket& bucket, std::span<const Value> sums) const {
  const Group& dp = *bucket.dp;
  std::size_t next = 0;
  for (const std::size_t own : bucket.accumulators) {
    const Segment& segment = segment_of(own);
    const std::int64_t count =
        holdings_.shards_gradients() ? shard_range(segment.count, dp.size(), dp.me).count() : segment.count;
    const Value& sum = sums[next++];
    if (sum.dtype() == DType::f32 && sum.count() == count) continue;
    return Error{.code = Code::mismatch,
                 .message = fmt::format("the sum of the gradients of {} has {} elements of {} where {} of f32 are due",
                                        segment.name, sum.count(), to_string(sum.dtype()), count)};
  }
  if (!bucket.loss || (sums[next].dtype() == DType::f32 && sums[next].count() == 1)) return {};
  return Error{.code = Code::mismatch, .message = "the sum of the losses is not one element of f32"};
}

Status GradientSums::finish(Started& started) {
  std::vector<Value> sums;
  for (const std::unique_ptr<PendingReduction>& part : started.parts) {
    FD_TRY(sums.emplace_back(), part->finish());
  }
  if (!holdings_.shards_gradients()) {
    const Value all = std::move(sums.front());
    sums.assign(all.parts().begin(), all.parts().end());
  }
  const std::size_t due = started.bucket.accumulators.size() + (started.bucket.loss ? 1 : 0);
  if (sums.size() != due || !std::ranges::all_of(sums, [](const Value& sum) { return static_cast<bool>(sum); })) {
    return Error{
        .code = Code::mismatch,
        .message = fmt::format("a bucket of gradients has {} sums, and {} of {} came", due,
                               std::ranges::count_if(sums, [](const Value& sum) { return static_cast<bool>(sum); }),
                               sums.size())};
  }
  FD_TRY_VOID(check_sums(started.bucket, sums));
  std::size_t next = 0;
  bytes_.let_go(started.bytes);
  for (const std::size_t own : started.bucket.accumulators) {
    bytes_.take(bytes_held(sums[next]));
    totals_[own] = std::move(sums[next++]);
  }
  if (started.bucket.loss) loss_ = std::move(sums[next]);
  return {};
}

}  // namespace firedrill
