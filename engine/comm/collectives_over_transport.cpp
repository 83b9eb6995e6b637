#include "engine/comm/collectives_over_transport.h"

#include <fmt/format.h>

#include <utility>

#include "engine/comm/exchange.h"

namespace firedrill {

TransportCollectives::TransportCollectives(Transport& transport, Compute& compute, const Position& position,
                                           Observer& observer, CollectivesOptions options)
    : transport_(transport),
      compute_(compute),
      position_(position),
      observer_(observer),
      options_(options),
      token_(Value::copy_of(std::span<const std::int64_t>())) {}

TransportCollectives::~TransportCollectives() = default;

GroupPlan& TransportCollectives::plan_of(const Group& group) {
  for (const std::unique_ptr<GroupPlan>& plan : plans_) {
    if (plan->id != group.id) continue;
    FD_CHECK(plan->subtrees.size() == group.ranks.size() && plan->lanes == group.lane_count(),
             "two groups with the number {}: {}", group.id, group.name);
    return *plan;
  }
  plans_.push_back(std::make_unique<GroupPlan>(group));
  return *plans_.back();
}

Exchange TransportCollectives::begin(const Group& group, const Call& call) {
  GroupPlan& plan = plan_of(group);
  return Exchange({.transport = transport_, .compute = compute_, .group = group, .plan = plan}, plan.calls++,
                  call.deadline, options_.sharded_from);
}

Error TransportCollectives::report(std::string_view operation, const Group& group, const Call& call, Error error) {
  if (error.code == Code::dead || error.code == Code::fenced) return error;
  error.message = fmt::format("{} of {} over {}: {}", operation, call.purpose, group.name, error.message);
  emit(observer_, position_, {.kind = EventKind::note, .name = observer_.intern(error.message)});
  return error;
}

class TransportCollectives::Pending final : public PendingReduction {
 public:
  Pending(TransportCollectives& collectives, const Group& group, ReduceOp op, bool scatter, const Call& call)
      : collectives_(collectives),
        group_(group),
        purpose_(call.purpose),
        exchange_(collectives.begin(group, call)),
        reduction_(exchange_.reduction(op, scatter)) {}

  Status start(std::span<const Value> lanes) {
    Status started = exchange_.start(reduction_, lanes);
    if (!started) return report(std::move(started).error());
    return started;
  }
  Status advance() override {
    Status advanced = exchange_.advance(reduction_);
    if (!advanced) return report(std::move(advanced).error());
    return advanced;
  }
  Result<Value> finish() override {
    Result<Value> result = exchange_.finish(reduction_);
    if (!result) return report(std::move(result).error());
    return result;
  }

 private:
  Error report(Error error) {
    const std::string_view operation = reduction_.scatter ? "reduce_scatter" : "all_reduce";
    return collectives_.report(operation, group_, {.purpose = purpose_, .deadline = {}}, std::move(error));
  }

  TransportCollectives& collectives_;
  const Group& group_;
  std::string purpose_;
  Exchange exchange_;
  Exchange::Reduction reduction_;
};

Result<std::unique_ptr<PendingReduction>> TransportCollectives::start_all_reduce(const Group& group,
                                                                                 std::span<const Value> lanes,
                                                                                 ReduceOp op, const Call& call) {
  auto pending = std::make_unique<Pending>(*this, group, op, false, call);
  FD_TRY_VOID(pending->start(lanes));
  return Result<std::unique_ptr<PendingReduction>>(std::move(pending));
}

Result<std::unique_ptr<PendingReduction>> TransportCollectives::start_reduce_scatter(const Group& group,
                                                                                     std::span<const Value> lanes,
                                                                                     ReduceOp op, const Call& call) {
  auto pending = std::make_unique<Pending>(*this, group, op, true, call);
  FD_TRY_VOID(pending->start(lanes));
  return Result<std::unique_ptr<PendingReduction>>(std::move(pending));
}

Result<Value> TransportCollectives::all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                               const Call& call) {
  Result<Value> result = begin(group, call).reduce(lanes, op, false);
  if (!result) return report("all_reduce", group, call, std::move(result).error());
  return result;
}

Result<Value> TransportCollectives::reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                                   const Call& call) {
  Result<Value> result = begin(group, call).reduce(lanes, op, true);
  if (!result) return report("reduce_scatter", group, call, std::move(result).error());
  return result;
}

Result<Value> TransportCollectives::all_gather(const Group& group, const Value& mine, const Call& call) {
  Result<Value> result = begin(group, call).all_gather(mine);
  if (!result) return report("all_gather", group, call, std::move(result).error());
  return result;
}

Result<Value> TransportCollectives::broadcast(const Group& group, const Value& value, int root, const Call& call) {
  Result<Value> result = begin(group, call).broadcast(value, root);
  if (!result) return report("broadcast", group, call, std::move(result).error());
  return result;
}

Status TransportCollectives::barrier(const Group& group, const Call& call) {
  Status status = begin(group, call).barrier(token_);
  if (!status) return report("barrier", group, call, std::move(status).error());
  return status;
}

Result<Value> TransportCollectives::all_to_all(const Group& group, std::span<const Value> to, const Call& call) {
  Result<Value> result = begin(group, call).all_to_all(to);
  if (!result) return report("all_to_all", group, call, std::move(result).error());
  return result;
}

Status TransportCollectives::send(const Group& group, int peer, const Value& value, const Call& call) {
  FD_CHECK(peer >= 0 && peer < group.size() && peer != group.me, "member {} sends to member {} of {}", group.me, peer,
           group.name);
  const auto member = static_cast<std::size_t>(peer);
  const Tag tag = pair_tag(group, plan_of(group).sent[member]++);
  Status status = transport_.send(group.ranks[member], tag, value, call.deadline);
  if (!status) return report("send", group, call, std::move(status).error());
  return status;
}

Result<Value> TransportCollectives::recv(const Group& group, int peer, const Call& call) {
  FD_CHECK(peer >= 0 && peer < group.size() && peer != group.me, "member {} receives from member {} of {}", group.me,
           peer, group.name);
  const auto member = static_cast<std::size_t>(peer);
  const Tag tag = pair_tag(group, plan_of(group).received[member]++);
  Result<Value> result = transport_.recv(group.ranks[member], tag, call.deadline);
  if (!result) return report("recv", group, call, std::move(result).error());
  return result;
}

void TransportCollectives::abort(const Error& reason) { transport_.abort(reason); }

}  // namespace firedrill
