#include "engine/comm/nccl/nccl_collectives.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "engine/base/value_codec.h"
#include "engine/comm/exchange.h"

namespace firedrill {
namespace {

constexpr int thirds = 3;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::span<const std::byte> bytes_of(const std::uint64_t& number) { return std::as_bytes(std::span(&number, 1)); }
std::span<std::byte> bytes_of(std::uint64_t& number) { return std::as_writable_bytes(std::span(&number, 1)); }

// One Value in place of several: the only one itself, else a pack.
Value as_message(std::span<const Value> values) { return values.size() == 1 ? values[0] : Value::pack(values); }

Error named(std::string_view operation, const Group& group, const Call& call, Error error) {
  error.message = fmt::format("{} of {} over {}: {}", operation, call.purpose, group.name, error.message);
  return error;
}

// Which of the three a member of the ring sends on: never the one that the member behind it sends on.
int third_of(int member, int size) { return member == size - 1 && size % 2 == 1 ? 2 : member % 2; }

}  // namespace

struct NcclCollectives::Channel {
  explicit Channel(const Group& group) : plan(group) {}
  GroupPlan plan;
  std::unique_ptr<Communicator> all;                       // none in a group of one
  std::array<std::unique_ptr<Communicator>, thirds> ring;  // by the sender's third, where there is such traffic

  Communicator& of_sender(int member, int size) {
    Communicator* third = ring[index(third_of(member, size))].get();
    FD_CHECK(third, "group {} was connected without point-to-point traffic", plan.id);
    return *third;
  }
};

NcclCollectives::NcclCollectives(std::unique_ptr<Communicator> world, Compute& compute, NcclOptions options)
    : world_(std::move(world)), compute_(compute), options_(options) {}

NcclCollectives::~NcclCollectives() = default;

Status NcclCollectives::connect(std::span<const NcclGroup> groups, Time deadline) {
  for (const NcclGroup& wanted : groups) {
    const Group& group = wanted.group;
    auto channel = std::make_unique<Channel>(group);
    FD_TRY(channel->all, world_->split(group.ranks[0], group.me, deadline));
    if (wanted.point_to_point) {
      for (std::unique_ptr<Communicator>& third : channel->ring) {
        FD_TRY(third, world_->split(group.ranks[0], group.me, deadline));
      }
    }
    channels_.insert_or_assign(group.id, std::move(channel));
  }
  return {};
}

NcclCollectives::Channel& NcclCollectives::channel_of(const Group& group) {
  const auto found = channels_.find(group.id);
  FD_CHECK(found != channels_.end(), "group {} ({}) was not connected", group.id, group.name);
  return *found->second;
}

Result<NcclCollectives::Messages> NcclCollectives::exchange(Channel& channel, const Group& group, const Messages& to,
                                                            Time deadline) {
  const std::size_t size = index(group.size());
  std::vector<std::vector<std::byte>> texts(size);
  std::vector<std::uint64_t> lengths(size);
  std::vector<std::uint64_t> coming(size);
  std::vector<std::span<const std::byte>> outgoing(size);
  std::vector<std::span<std::byte>> incoming(size);
  for (std::size_t i = 0; i < size; ++i) {
    if (i == index(group.me)) continue;
    if (to[i]) texts[i] = serialise(*to[i]);
    lengths[i] = texts[i].size();
    outgoing[i] = bytes_of(lengths[i]);
    incoming[i] = bytes_of(coming[i]);
  }
  FD_TRY_VOID(channel.all->exchange(outgoing, incoming, deadline));
  std::vector<std::vector<std::byte>> arrived(size);
  for (std::size_t i = 0; i < size; ++i) {
    arrived[i].resize(coming[i]);
    outgoing[i] = texts[i];
    incoming[i] = arrived[i];
  }
  FD_TRY_VOID(channel.all->exchange(outgoing, incoming, deadline));
  Messages from(size);
  for (std::size_t i = 0; i < size; ++i) {
    if (coming[i] == 0) continue;
    FD_TRY(from[i], parse(arrived[i]));
  }
  return from;
}

Result<TreeReduction> NcclCollectives::reduce_own(const Group& group, std::span<const Value> lanes, ReduceOp op) {
  const LaneRange owned = group.lanes[index(group.me)];
  FD_CHECK(static_cast<int>(lanes.size()) == owned.count(), "{} Values for {} lanes of {}", lanes.size(), owned.count(),
           group.name);
  TreeReduction own(compute_, op, group.lane_count());
  for (int i = 0; i < owned.count(); ++i) {
    FD_TRY_VOID(own.add({.level = 0, .index = owned.begin + i}, lanes[index(i)]));
  }
  return own;
}

Status NcclCollectives::add_partials(const Group& group, int member, Value message, TreeReduction& total) {
  const std::vector<TreeNode>& nodes = channel_of(group).plan.subtrees[index(member)];
  if (nodes.size() == 1) return total.add(nodes[0], std::move(message));
  if (!message || !message.is_pack() || message.parts().size() != nodes.size()) {
    return Error{.code = Code::mismatch,
                 .message = fmt::format("rank {} sent something else than {} partial results",
                                        group.ranks[index(member)], nodes.size())};
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) FD_TRY_VOID(total.add(nodes[i], message[i]));
  return {};
}

// The root of the tree, from the partial results of all members.
Result<Value> NcclCollectives::add_all(Channel& channel, const Group& group, Messages partials, ReduceOp op) {
  TreeReduction total(compute_, op, group.lane_count());
  for (int member = 0; member < group.size(); ++member) {
    if (channel.plan.subtrees[index(member)].empty()) continue;
    if (!partials[index(member)]) {
      return Error{.code = Code::mismatch,
                   .message = fmt::format("rank {} gave nothing to add", group.ranks[index(member)])};
    }
    FD_TRY_VOID(add_partials(group, member, *std::move(partials[index(member)]), total));
  }
  FD_CHECK(total.count() == 1, "{} roots over {} lanes", total.count(), group.lane_count());
  return total.take(0);
}

Result<Value> NcclCollectives::reduce_to_owner(Channel& channel, const Group& group, const TreeReduction& own,
                                               ReduceOp op, Time deadline) {
  const int owner = static_cast<int>(channel.plan.calls % static_cast<std::uint64_t>(group.size()));
  Messages to(index(group.size()));
  if (own.count() > 0) to[index(owner)] = as_message(own.partials());
  FD_TRY(Messages partials, exchange(channel, group, to, deadline));
  Messages back(index(group.size()));
  if (group.me == owner) {
    partials[index(owner)] = to[index(owner)];
    FD_TRY(const Value whole, add_all(channel, group, std::move(partials), op));
    for (std::optional<Value>& message : back) message = whole;
  }
  FD_TRY(Messages wholes, exchange(channel, group, back, deadline));
  std::optional<Value>& mine = group.me == owner ? back[index(owner)] : wholes[index(owner)];
  if (!mine) return Error{.code = Code::mismatch, .message = "no result came from the owner of the call"};
  return *std::move(mine);
}

Result<Value> NcclCollectives::reduce_own_shard(Channel& channel, const Group& group, const TreeReduction& own,
                                                ReduceOp op, Time deadline) {
  Messages to(index(group.size()));
  for (int member = 0; member < group.size(); ++member) {
    std::vector<Value> shards;
    for (const Value& partial : own.partials()) {
      const Range range = shard_range(partial.count(), group.size(), member);
      FD_TRY(shards.emplace_back(),
             run_kernel(compute_, slice_kernel, SliceScalars{.begin = range.begin, .count = range.count()}, {partial}));
    }
    if (!shards.empty()) to[index(member)] = as_message(shards);
  }
  FD_TRY(Messages partials, exchange(channel, group, to, deadline));
  partials[index(group.me)] = to[index(group.me)];
  return add_all(channel, group, std::move(partials), op);
}

Result<Value> NcclCollectives::reduce_natively(Channel& channel, const Group& group, const TreeReduction& own,
                                               ReduceOp op, Time deadline) {
  TreeReduction whole(compute_, op, static_cast<int>(own.count()));
  for (std::size_t i = 0; i < own.count(); ++i) {
    FD_TRY_VOID(whole.add({.level = 0, .index = static_cast<int>(i)}, own[i]));
  }
  FD_CHECK(whole.count() == 1, "every member needs a lane for NCCL's own reductions; {} has none", group.name);
  std::vector<Value> sums;
  const std::span<const Value> parts = whole[0].is_pack() ? whole[0].parts() : whole.partials();
  for (const Value& part : parts) {
    MutableValue sum(part.dtype(), part.shape());
    FD_TRY_VOID(channel.all->all_reduce(part.dtype(), part.bytes(), sum.bytes(), op, deadline));
    sums.push_back(std::move(sum).freeze());
  }
  return whole[0].is_pack() ? Value::pack(sums) : sums[0];
}

Result<Value> NcclCollectives::reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, Time deadline) {
  FD_TRY(TreeReduction own, reduce_own(group, lanes, op));
  if (group.size() == 1) return own.take(0);
  Channel& channel = channel_of(group);
  ++channel.plan.calls;
  if (options_.native) return reduce_natively(channel, group, own, op, deadline);
  const bool flat = channel.plan.all_own_lanes && !own[0].is_pack();
  if (!flat) return reduce_to_owner(channel, group, own, op, deadline);
  const DType dtype = own[0].dtype();
  const Shape shape = own[0].shape();
  FD_TRY(const Value shard, reduce_own_shard(channel, group, own, op, deadline));
  FD_TRY(Messages others, exchange(channel, group, Messages(index(group.size()), shard), deadline));
  others[index(group.me)] = shard;
  std::vector<Value> shards;
  for (std::optional<Value>& other : others) {
    if (!other) return Error{.code = Code::mismatch, .message = "a member gave no shard"};
    shards.push_back(*std::move(other));
  }
  FD_TRY(const Value whole, compute_.run(concat_kernel, {}, shards));
  if (whole.dtype() != dtype || whole.count() != shape.count()) {
    return Error{.code = Code::mismatch,
                 .message = fmt::format("shards of {} elements in place of {}", whole.count(), shape.count())};
  }
  return whole.reinterpret(dtype, shape);
}

Result<Value> NcclCollectives::all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                          const Call& call) {
  Result<Value> result = reduce(group, lanes, op, call.deadline);
  if (!result) return named("all_reduce", group, call, std::move(result).error());
  return result;
}

Result<Value> NcclCollectives::reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                              const Call& call) {
  const auto shard = [&]() -> Result<Value> {
    if (options_.native || group.size() == 1 || !channel_of(group).plan.all_own_lanes) {
      FD_TRY(const Value whole, reduce(group, lanes, op, call.deadline));
      const Range range = shard_range(whole.count(), group.size(), group.me);
      return run_kernel(compute_, slice_kernel, SliceScalars{.begin = range.begin, .count = range.count()}, {whole});
    }
    FD_TRY(const TreeReduction own, reduce_own(group, lanes, op));
    return reduce_own_shard(channel_of(group), group, own, op, call.deadline);
  };
  Result<Value> result = shard();
  if (!result) return named("reduce_scatter", group, call, std::move(result).error());
  return result;
}

Result<Value> NcclCollectives::all_gather(const Group& group, const Value& mine, const Call& call) {
  FD_CHECK(mine, "nothing to gather");
  if (group.size() == 1) return Value::pack({mine});
  return all_to_all(group, std::vector<Value>(index(group.size()), mine), call);
}

Result<Value> NcclCollectives::broadcast(const Group& group, const Value& value, int root, const Call& call) {
  FD_CHECK(root >= 0 && root < group.size(), "root {} of {} members", root, group.size());
  if (group.size() == 1) return value;
  Messages to(index(group.size()));
  if (group.me == root) {
    for (std::optional<Value>& message : to) message = value;
  }
  Result<Messages> from = exchange(channel_of(group), group, to, call.deadline);
  if (!from) return named("broadcast", group, call, std::move(from).error());
  if (group.me == root) return value;
  std::optional<Value>& came = (*from)[index(root)];
  if (!came) return named("broadcast", group, call, {.code = Code::mismatch, .message = "nothing came from the root"});
  return *std::move(came);
}

Status NcclCollectives::barrier(const Group& group, const Call& call) {
  if (group.size() == 1) return {};
  // Sizes alone: whoever has those of all others knows that all are here.
  const Result<Messages> met = exchange(channel_of(group), group, Messages(index(group.size())), call.deadline);
  return met ? Status() : Status(named("barrier", group, call, met.error()));
}

Result<Value> NcclCollectives::all_to_all(const Group& group, std::span<const Value> to, const Call& call) {
  FD_CHECK(static_cast<int>(to.size()) == group.size(), "{} parts for {} members", to.size(), group.size());
  if (group.size() == 1) return Value::pack(to);
  const Messages messages(to.begin(), to.end());
  Result<Messages> from = exchange(channel_of(group), group, messages, call.deadline);
  if (!from) return named("all_to_all", group, call, std::move(from).error());
  std::vector<Value> parts;
  for (int member = 0; member < group.size(); ++member) {
    std::optional<Value>& part = (*from)[index(member)];
    if (member != group.me && !part) {
      return named(
          "all_to_all", group, call,
          {.code = Code::mismatch, .message = fmt::format("nothing came from rank {}", group.ranks[index(member)])});
    }
    parts.push_back(member == group.me ? to[index(member)] : *std::move(part));
  }
  return Value::pack(parts);
}

Status NcclCollectives::send(const Group& group, int peer, const Value& value, const Call& call) {
  FD_CHECK(peer >= 0 && peer < group.size() && peer != group.me, "member {} sends to member {} of {}", group.me, peer,
           group.name);
  Communicator& link = channel_of(group).of_sender(group.me, group.size());
  const std::vector<std::byte> text = serialise(value);
  const std::uint64_t length = text.size();
  Status sent = link.send(peer, bytes_of(length), call.deadline);
  if (sent) sent = link.send(peer, text, call.deadline);
  if (!sent) return named("send", group, call, std::move(sent).error());
  return sent;
}

Result<Value> NcclCollectives::recv(const Group& group, int peer, const Call& call) {
  FD_CHECK(peer >= 0 && peer < group.size() && peer != group.me, "member {} receives from member {} of {}", group.me,
           peer, group.name);
  Communicator& link = channel_of(group).of_sender(peer, group.size());
  std::uint64_t length = 0;
  std::vector<std::byte> text;
  Status received = link.receive(peer, bytes_of(length), call.deadline);
  if (received) {
    text.resize(length);
    received = link.receive(peer, text, call.deadline);
  }
  if (!received) return named("recv", group, call, std::move(received).error());
  return parse(text);
}

void NcclCollectives::abort(const Error& /*reason*/) {
  for (const auto& [id, channel] : channels_) {
    if (channel->all) channel->all->abort();
    for (const std::unique_ptr<Communicator>& third : channel->ring) {
      if (third) third->abort();
    }
  }
  if (world_) world_->abort();
}

}  // namespace firedrill
