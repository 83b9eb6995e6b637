#include "faults/faulty_collectives.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace firedrill {
namespace {

// One element less; of a pack, in its first part.
Value shortened(const Value& value) {
  if (value.is_pack()) {
    std::vector<Value> parts(value.parts().begin(), value.parts().end());
    if (!parts.empty()) parts.front() = shortened(parts.front());
    return Value::pack(parts);
  }
  const std::int64_t count = value.count();
  return value.reinterpret(value.dtype(), Shape{count}).slice(0, std::max<std::int64_t>(count - 1, 0));
}

// As many elements of another type; of a pack, in all parts.
Value retyped(const Value& value) {
  if (value.is_pack()) {
    std::vector<Value> parts;
    for (const Value& part : value.parts()) parts.push_back(retyped(part));
    return Value::pack(parts);
  }
  MutableValue other(value.dtype() == DType::i64 ? DType::f32 : DType::i64, value.shape());
  std::ranges::fill(other.bytes(), std::byte{0});
  return std::move(other).freeze();
}

std::vector<Value> lanes_for(const CollectiveCall& what, std::span<const Value> lanes) {
  std::vector<Value> changed(lanes.begin(), lanes.end());
  for (Value& lane : changed) {
    if (what.wrong_count) lane = shortened(lane);
    if (what.wrong_dtype) lane = retyped(lane);
  }
  return changed;
}

ReduceOp reduction_for(const CollectiveCall& what, ReduceOp op) {
  if (!what.wrong_reduce_op) return op;
  return op == ReduceOp::sum ? ReduceOp::max : ReduceOp::sum;
}

Value own_part(const Group& group, std::span<const Value> lanes) {
  if (lanes.empty()) return {};
  const Range range = shard_range(lanes.front().count(), group.size(), group.me);
  return lanes.front().slice(range.begin, range.count());
}

}  // namespace

std::int64_t FaultyCollectives::count(CollectiveOp op, const Group& group, int peer) {
  const bool outgoing = op == CollectiveOp::send;
  for (Stream& stream : streams_) {
    if (stream.group == group.id && stream.peer == peer && stream.outgoing == outgoing) return stream.calls++;
  }
  streams_.push_back({.group = group.id, .peer = peer, .outgoing = outgoing, .calls = 1});
  return 0;
}

CollectiveCall FaultyCollectives::made(CollectiveOp op, const Group& group, const Call& call, int peer) {
  return {.op = op, .group = group, .peer = peer, .sequence = count(op, group, peer), .purpose = call.purpose};
}

template <class Inner, class Alone, class Hold>
auto FaultyCollectives::with_faults(CollectiveCall& what, Inner inner, Alone alone, Hold hold) -> decltype(inner()) {
  const std::unique_ptr<Held> before = std::exchange(held_, nullptr);
  if (before) FD_TRY_VOID(injector_.fire_held({.op = SeamOp::collective, .collective = &before->made}));
  what.can_be_held = !std::is_same_v<Hold, std::nullptr_t>;
  auto result = injector_.around({.op = SeamOp::collective, .collective = &what}, [&]() -> decltype(inner()) {
    if constexpr (!std::is_same_v<Hold, std::nullptr_t>) {
      if (what.held && !before) return hold();
    }
    if (what.held) injector_.drop_held();  // the rank waits for it
    if (what.skipped) return alone();
    auto first = inner();
    if (!first || !what.doubled) return first;
    if (auto second = inner(); !second) return second;
    return first;
  });
  if (what.aborts) inner_.abort(result.error());
  if (before && result) FD_TRY_VOID(before->now());
  return result;
}

Status FaultyCollectives::make_in_place() {
  FD_CHECK(held_ != nullptr, "a call was held back and is gone");
  injector_.drop_held();
  return std::exchange(held_, nullptr)->now();
}

// A reduction whose start is held back, until the next call is made or until it is waited for.
class FaultyCollectives::LateReduction final : public PendingReduction {
 public:
  using Started = std::shared_ptr<std::unique_ptr<PendingReduction>>;
  LateReduction(FaultyCollectives& owner, Started started) : owner_(owner), started_(std::move(started)) {}
  Status advance() override {
    if (!*started_) FD_TRY_VOID(owner_.make_in_place());
    return (*started_)->advance();
  }
  Result<Value> finish() override {
    if (!*started_) FD_TRY_VOID(owner_.make_in_place());
    return (*started_)->finish();
  }

 private:
  FaultyCollectives& owner_;
  Started started_;
};

// A reduction of which a census wants to know when its rank waits for it.
class FaultyCollectives::CountedReduction final : public PendingReduction {
 public:
  CountedReduction(std::unique_ptr<PendingReduction> inner, TaskCensus& census)
      : inner_(std::move(inner)), census_(census), call_(census.unawaited()) {}
  Status advance() override {
    census_.waits_for(call_);
    return inner_->advance();
  }
  Result<Value> finish() override {
    census_.waits_for(call_);
    return inner_->finish();
  }

 private:
  std::unique_ptr<PendingReduction> inner_;
  TaskCensus& census_;
  std::optional<std::size_t> call_;
};

Result<std::unique_ptr<PendingReduction>> FaultyCollectives::start(CollectiveOp op, const Group& group,
                                                                   std::span<const Value> lanes, ReduceOp reduce,
                                                                   const Call& call) {
  using Pending = Result<std::unique_ptr<PendingReduction>>;
  const bool whole = op == CollectiveOp::all_reduce;
  const auto begin = [this, whole](const Group& of, std::span<const Value> given, ReduceOp by, const Call& with) {
    return whole ? inner_.start_all_reduce(of, given, by, with) : inner_.start_reduce_scatter(of, given, by, with);
  };
  CollectiveCall what = made(op, group, call);
  Pending pending = with_faults(
      what,
      [&]() -> Pending {
        if (!what.wrong_count && !what.wrong_dtype) return begin(group, lanes, reduction_for(what, reduce), call);
        return begin(group, lanes_for(what, lanes), reduce, call);
      },
      [&]() -> Pending {
        Value own = whole ? lanes.front() : own_part(group, lanes);
        return Pending(std::make_unique<DoneReduction>(std::move(own)));
      },
      [&]() -> Pending {
        auto started = std::make_shared<std::unique_ptr<PendingReduction>>();
        const std::vector<Value> kept(lanes.begin(), lanes.end());
        // The caller keeps the group as long as the reduction.
        held_ = std::make_unique<Held>(what, call, [=, &group](const Group&, const Call& with) -> Status {
          FD_TRY(*started, begin(group, kept, reduce, with));
          return {};
        });
        return Pending(std::make_unique<LateReduction>(*this, started));
      });
  if (!pending || !injector_.census()) return pending;
  return Pending(std::make_unique<CountedReduction>(*std::move(pending), *injector_.census()));
}

Result<std::unique_ptr<PendingReduction>> FaultyCollectives::start_all_reduce(const Group& group,
                                                                              std::span<const Value> lanes, ReduceOp op,
                                                                              const Call& call) {
  return start(CollectiveOp::all_reduce, group, lanes, op, call);
}

Result<std::unique_ptr<PendingReduction>> FaultyCollectives::start_reduce_scatter(const Group& group,
                                                                                  std::span<const Value> lanes,
                                                                                  ReduceOp op, const Call& call) {
  return start(CollectiveOp::reduce_scatter, group, lanes, op, call);
}

Result<Value> FaultyCollectives::all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                            const Call& call) {
  CollectiveCall what = made(CollectiveOp::all_reduce, group, call);
  return with_faults(
      what,
      [&] {
        if (!what.wrong_count && !what.wrong_dtype)
          return inner_.all_reduce(group, lanes, reduction_for(what, op), call);
        return inner_.all_reduce(group, lanes_for(what, lanes), op, call);
      },
      [&]() -> Result<Value> { return lanes.empty() ? Value() : lanes.front(); }, nullptr);
}

Result<Value> FaultyCollectives::reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                                const Call& call) {
  CollectiveCall what = made(CollectiveOp::reduce_scatter, group, call);
  return with_faults(
      what,
      [&] {
        if (!what.wrong_count && !what.wrong_dtype) {
          return inner_.reduce_scatter(group, lanes, reduction_for(what, op), call);
        }
        return inner_.reduce_scatter(group, lanes_for(what, lanes), op, call);
      },
      [&]() -> Result<Value> { return own_part(group, lanes); }, nullptr);
}

Result<Value> FaultyCollectives::all_gather(const Group& group, const Value& mine, const Call& call) {
  CollectiveCall what = made(CollectiveOp::all_gather, group, call);
  return with_faults(
      what, [&] { return inner_.all_gather(group, mine, call); },
      [&]() -> Result<Value> { return Value::pack(std::vector<Value>(group.ranks.size(), mine)); }, nullptr);
}

Result<Value> FaultyCollectives::broadcast(const Group& group, const Value& value, int root, const Call& call) {
  CollectiveCall what = made(CollectiveOp::broadcast, group, call);
  return with_faults(
      what, [&] { return inner_.broadcast(group, value, what.wrong_root ? (root + 1) % group.size() : root, call); },
      [&]() -> Result<Value> { return value; }, nullptr);
}

Status FaultyCollectives::barrier(const Group& group, const Call& call) {
  CollectiveCall what = made(CollectiveOp::barrier, group, call);
  const auto make = [this](const Group& of, const Call& with) { return inner_.barrier(of, with); };
  return with_faults(
      what, [&] { return make(group, call); }, [] { return Status(); },
      [&] { return held_ = std::make_unique<Held>(what, call, make), Status(); });
}

Result<Value> FaultyCollectives::all_to_all(const Group& group, std::span<const Value> to, const Call& call) {
  CollectiveCall what = made(CollectiveOp::all_to_all, group, call);
  return with_faults(
      what, [&] { return inner_.all_to_all(group, to, call); }, [&]() -> Result<Value> { return Value::pack(to); },
      nullptr);
}

Status FaultyCollectives::send(const Group& group, int peer, const Value& value, const Call& call) {
  CollectiveCall what = made(CollectiveOp::send, group, call, peer);
  const auto make = [this, peer, value](const Group& of, const Call& with) {
    return inner_.send(of, peer, value, with);
  };
  return with_faults(
      what, [&] { return make(group, call); }, [] { return Status(); },
      [&] { return held_ = std::make_unique<Held>(what, call, make), Status(); });
}

Result<Value> FaultyCollectives::recv(const Group& group, int peer, const Call& call) {
  CollectiveCall what = made(CollectiveOp::recv, group, call, peer);
  return with_faults(
      what, [&] { return inner_.recv(group, peer, call); }, []() -> Result<Value> { return Value(); }, nullptr);
}

}  // namespace firedrill
