#include "engine/comm/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace firedrill {
namespace {

constexpr int round_bits = 4;
constexpr int number_bits = 36;
constexpr std::uint64_t pair_round = (1U << round_bits) - 1;

// Group, call and round side by side: no two of them share a tag.
Tag make_tag(std::uint32_t group, std::uint64_t number, std::uint64_t round) {
  FD_CHECK(group < 1U << (64 - number_bits - round_bits) && number < 1ULL << number_bits,
           "call {} of group {} has no tag left", number, group);
  return Tag{group} << (number_bits + round_bits) | number << round_bits | round;
}

// One Value in place of several: the only one itself, else a pack.
Value as_message(std::span<const Value> values) { return values.size() == 1 ? values[0] : Value::pack(values); }

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Which member owns each part of a pack that is reduced by shards: in order, always the one with the fewest bytes yet.
std::vector<int> owners_of_parts(const Value& pack, int members) {
  std::vector<std::size_t> load(index(members));
  std::vector<int> owners;
  for (const Value& part : pack.parts()) {
    const auto lightest = std::min_element(load.begin(), load.end());
    owners.push_back(static_cast<int>(lightest - load.begin()));
    *lightest += part.bytes_total();
  }
  return owners;
}

}  // namespace

GroupPlan::GroupPlan(const Group& group)
    : id(group.id), lanes(group.lane_count()), sent(group.ranks.size()), received(group.ranks.size()) {
  for (const LaneRange& owned : group.lanes) {
    subtrees.push_back(maximal_subtrees(owned, lanes));
    all_own_lanes = all_own_lanes && owned.count() > 0;
  }
}

Tag pair_tag(const Group& group, std::uint64_t number) { return make_tag(group.id, number, pair_round); }

std::string describe_tag(Tag tag) {
  const std::uint64_t round = tag & pair_round;
  const std::uint64_t number = tag >> round_bits & ((std::uint64_t{1} << number_bits) - 1);
  const std::uint64_t group = tag >> (number_bits + round_bits);
  if (round == pair_round) return fmt::format("group {}, call {} between two", group, number);
  constexpr std::array<std::string_view, 3> names = {"to the owner", "from the owner", "between any two"};
  return fmt::format("group {}, call {}, {}", group, number, round < names.size() ? names[round] : "?");
}

Status Exchange::send(int member, Round round, const Value& value) {
  return transport_.send(group_.ranks[index(member)], make_tag(group_.id, number_, static_cast<std::uint64_t>(round)),
                         value, deadline_);
}

Result<Value> Exchange::recv(int member, Round round) {
  return transport_.recv(group_.ranks[index(member)], make_tag(group_.id, number_, static_cast<std::uint64_t>(round)),
                         deadline_);
}

Status Exchange::send_to_others(Round round, const Value& value) {
  for (int member = 0; member < size(); ++member) {
    if (member != me()) FD_TRY_VOID(send(member, round, value));
  }
  return {};
}

Status Exchange::reduce_own_lanes(std::span<const Value> lanes, TreeReduction& own) {
  const LaneRange owned = group_.lanes[index(me())];
  FD_CHECK(static_cast<int>(lanes.size()) == owned.count(), "{} Values for {} lanes of {}", lanes.size(), owned.count(),
           group_.name);
  for (int i = 0; i < owned.count(); ++i) {
    FD_TRY_VOID(own.add({.level = 0, .index = owned.begin + i}, lanes[index(i)]));
  }
  return {};
}

Status Exchange::add_partials_of(int member, Value message, TreeReduction& total) {
  const std::vector<TreeNode>& nodes = plan_.subtrees[index(member)];
  if (nodes.size() == 1) return total.add(nodes[0], std::move(message));
  if (!message || !message.is_pack() || message.parts().size() != nodes.size()) {
    return Error{.code = Code::mismatch,
                 .message = fmt::format("rank {} sent something else than {} partial results",
                                        group_.ranks[index(member)], nodes.size())};
  }
  std::vector<Value> partials(message.parts().begin(), message.parts().end());
  message = Value();
  for (std::size_t i = 0; i < nodes.size(); ++i) FD_TRY_VOID(total.add(nodes[i], std::move(partials[i])));
  return {};
}

bool Exchange::sharded(const TreeReduction& own) const {
  return size() > 1 && plan_.all_own_lanes && own[0].bytes_total() >= sharded_from_;
}

Result<Value> Exchange::reduce_on_owner(TreeReduction& own, ReduceOp op) {
  TreeReduction total(compute_, op, plan_.lanes);
  for (int member = 0; member < size(); ++member) {
    const std::vector<TreeNode>& nodes = plan_.subtrees[index(member)];
    if (member == me()) {
      for (std::size_t i = 0; i < nodes.size(); ++i) FD_TRY_VOID(total.add(nodes[i], own.take(i)));
    } else if (!nodes.empty()) {
      FD_TRY(Value message, recv(member, Round::in));
      FD_TRY_VOID(add_partials_of(member, std::move(message), total));
    }
  }
  FD_CHECK(total.count() == 1, "{} roots over {} lanes", total.count(), plan_.lanes);
  return total.take(0);
}

Result<Value> Exchange::cut(const Value& whole, int member) {
  if (whole.is_pack()) {
    const std::vector<int> owners = owners_of_parts(whole, size());
    std::vector<Value> parts;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] == member) parts.push_back(whole[i]);
    }
    return Value::pack(parts);
  }
  const Range range = shard_range(whole.count(), size(), member);
  return run_kernel(compute_, slice_kernel, SliceScalars{.begin = range.begin, .count = range.count()}, {whole});
}

Result<Value> Exchange::join(std::span<Value> shards, const Value& like) {
  if (!like.is_pack()) {
    FD_TRY(Value flat, compute_.run(concat_kernel, {}, shards));
    if (flat.dtype() != like.dtype() || flat.count() != like.count()) {
      return Error{.code = Code::mismatch,
                   .message = fmt::format("shards of {} elements in place of {}", flat.count(), like.count())};
    }
    return flat.reinterpret(like.dtype(), like.shape());
  }
  std::vector<Value> parts;
  std::vector<std::size_t> taken(shards.size());
  for (const int member : owners_of_parts(like, size())) {
    const Value& shard = shards[index(member)];
    const std::size_t next = taken[index(member)]++;
    if (!shard || !shard.is_pack() || next >= shard.parts().size()) {
      return Error{.code = Code::mismatch,
                   .message = fmt::format("rank {} sent too few parts", group_.ranks[index(member)])};
    }
    parts.push_back(shard[next]);
  }
  return Value::pack(parts);
}

Result<std::vector<Value>> Exchange::send_shards(const TreeReduction& own) {
  std::vector<Value> mine;
  for (int i = 1; i <= size(); ++i) {  // the own shard last, and every member begins with another one
    const int member = (me() + i) % size();
    std::vector<Value> shards;
    for (const Value& partial : own.partials()) {
      FD_TRY(shards.emplace_back(), cut(partial, member));
    }
    if (member == me()) {
      mine = std::move(shards);
    } else {
      FD_TRY_VOID(send(member, Round::in, as_message(shards)));
    }
  }
  return mine;
}

Result<Value> Exchange::reduce_own_shard(std::span<const Value> mine, ReduceOp op) {
  TreeReduction total(compute_, op, plan_.lanes);
  for (int member = 0; member < size(); ++member) {
    if (member == me()) {
      FD_TRY_VOID(add_partials_of(member, as_message(mine), total));
      continue;
    }
    FD_TRY(Value message, recv(member, Round::in));
    FD_TRY_VOID(add_partials_of(member, std::move(message), total));
  }
  FD_CHECK(total.count() == 1, "{} roots over {} lanes", total.count(), plan_.lanes);
  return total.take(0);
}

Result<Value> Exchange::gather_shards(Value mine, const Value& like) {
  std::vector<Value> shards(index(size()));
  for (int member = 0; member < size(); ++member) {
    if (member == me()) {
      shards[index(member)] = std::move(mine);
    } else {
      FD_TRY(shards[index(member)], recv(member, Round::out));
    }
  }
  return join(shards, like);
}

Status Exchange::start(Reduction& reduction, std::span<const Value> lanes) {
  TreeReduction& own = reduction.own;
  FD_TRY_VOID(reduce_own_lanes(lanes, own));
  if (reduction.scatter) {
    FD_CHECK(own.count() == 0 || (!own[0].is_pack() && own[0].shape().rank() == 1), "{} has other than one dimension",
             group_.name);
  }
  reduction.sharded = sharded(own);
  if (reduction.sharded) {
    FD_TRY(reduction.mine, send_shards(own));
    return {};
  }
  if (me() == owner() || own.count() == 0) return {};
  return send(owner(), Round::in, as_message(own.partials()));
}

Status Exchange::advance(Reduction& reduction) {
  if (std::exchange(reduction.advanced, true)) return {};
  Value& result = reduction.result;
  if (reduction.sharded) {
    FD_TRY(result, reduce_own_shard(reduction.mine, reduction.op));
    return reduction.scatter ? Status() : send_to_others(Round::out, result);
  }
  if (me() != owner()) return {};
  FD_TRY(result, reduce_on_owner(reduction.own, reduction.op));
  if (!reduction.scatter) return send_to_others(Round::out, result);
  for (int member = 0; member < size(); ++member) {
    if (member == me()) continue;
    FD_TRY(Value shard, cut(result, member));
    FD_TRY_VOID(send(member, Round::out, shard));
  }
  FD_TRY(result, cut(result, me()));
  return {};
}

Result<Value> Exchange::finish(Reduction& reduction) {
  FD_TRY_VOID(advance(reduction));
  if (reduction.sharded && !reduction.scatter) return gather_shards(std::move(reduction.result), reduction.own[0]);
  if (reduction.sharded || me() == owner()) return std::move(reduction.result);
  return recv(owner(), Round::out);
}

Result<Value> Exchange::reduce(std::span<const Value> lanes, ReduceOp op, bool scatter) {
  Reduction whole = reduction(op, scatter);
  FD_TRY_VOID(start(whole, lanes));
  return finish(whole);
}

// Over the owner and back. A Value that is too large for the detour goes straight to everybody, and an empty Value in
// its place tells the owner, and by the owner's pack all others, to expect it.
Result<Value> Exchange::all_gather(const Value& mine) {
  FD_CHECK(mine, "nothing to gather");
  if (size() == 1) return Value::pack({mine});
  const bool direct = mine.bytes_total() >= sharded_from_;
  if (direct) FD_TRY_VOID(send_to_others(Round::direct, mine));
  const Value announced = direct ? Value() : mine;
  Value gathered;
  if (me() == owner()) {
    std::vector<Value> parts(index(size()));
    for (int member = 0; member < size(); ++member) {
      if (member == me()) {
        parts[index(member)] = announced;
      } else {
        FD_TRY(parts[index(member)], recv(member, Round::in));
      }
    }
    gathered = Value::pack(parts);
    FD_TRY_VOID(send_to_others(Round::out, gathered));
  } else {
    FD_TRY_VOID(send(owner(), Round::in, announced));
    FD_TRY(gathered, recv(owner(), Round::out));
  }
  if (!gathered || !gathered.is_pack() || gathered.parts().size() != index(size())) {
    return Error{.code = Code::mismatch, .message = "the owner sent something else than one Value of each member"};
  }
  const auto absent = [](const Value& part) { return !part; };
  if (std::ranges::none_of(gathered.parts(), absent)) return gathered;
  std::vector<Value> parts(gathered.parts().begin(), gathered.parts().end());
  for (int member = 0; member < size(); ++member) {
    if (parts[index(member)]) continue;
    if (member == me()) {
      parts[index(member)] = mine;
    } else {
      FD_TRY(parts[index(member)], recv(member, Round::direct));
    }
  }
  return Value::pack(parts);
}

Result<Value> Exchange::broadcast(const Value& value, int root) {
  FD_CHECK(root >= 0 && root < size(), "root {} of {} members", root, size());
  if (me() != root) return recv(root, Round::out);
  FD_TRY_VOID(send_to_others(Round::out, value));
  return value;
}

Status Exchange::barrier(const Value& token) {
  if (me() != owner()) {
    FD_TRY_VOID(send(owner(), Round::in, token));
    FD_TRY_VOID(recv(owner(), Round::out));
    return {};
  }
  for (int member = 0; member < size(); ++member) {
    if (member != me()) FD_TRY_VOID(recv(member, Round::in));
  }
  return send_to_others(Round::out, token);
}

Result<Value> Exchange::all_to_all(std::span<const Value> to) {
  FD_CHECK(static_cast<int>(to.size()) == size(), "{} parts for {} members", to.size(), size());
  for (int i = 1; i < size(); ++i) {
    const int member = (me() + i) % size();
    FD_TRY_VOID(send(member, Round::direct, to[index(member)]));
  }
  std::vector<Value> parts(index(size()));
  for (int member = 0; member < size(); ++member) {
    if (member == me()) {
      parts[index(member)] = to[index(member)];
    } else {
      FD_TRY(parts[index(member)], recv(member, Round::direct));
    }
  }
  return Value::pack(parts);
}

}  // namespace firedrill
