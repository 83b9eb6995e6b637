// Exchange: one collective call in progress, as steps over point-to-point messages. See collectives_over_transport.h
// for how calls go and which errors they give.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/comm/tree.h"
#include "engine/seam/collectives.h"
#include "engine/seam/compute.h"
#include "engine/seam/transport.h"

namespace firedrill {

// What is fixed for a group: which subtrees each member reduces by itself.
struct GroupPlan {
  explicit GroupPlan(const Group& group);

  std::uint32_t id;
  int lanes;
  std::vector<std::vector<TreeNode>> subtrees;  // of each member
  bool all_own_lanes = true;            // else members without lanes do not know sizes, and no call may depend on them
  std::uint64_t calls = 0;              // collective calls so far
  std::vector<std::uint64_t> sent;      // to each member
  std::vector<std::uint64_t> received;  // from each
};

// The tag of the n-th send/recv from one member to another, which the others do not count.
Tag pair_tag(const Group& group, std::uint64_t number);
// "group 2, call 17, from the owner": what a tag says.
std::string describe_tag(Tag tag);

class Exchange {
 public:
  struct Parties {
    Transport& transport;
    Compute& compute;
    const Group& group;
    const GroupPlan& plan;
  };
  // `number`: of the call within the group. `sharded_from`: bytes.
  Exchange(const Parties& parties, std::uint64_t number, Time deadline, std::size_t sharded_from)
      : transport_(parties.transport),
        compute_(parties.compute),
        group_(parties.group),
        plan_(parties.plan),
        number_(number),
        deadline_(deadline),
        sharded_from_(sharded_from) {}

  // A reduction and how far it is: start, advance and finish it, in this order; finish() advances what is not.
  struct Reduction {
    TreeReduction own;  // of this member's lanes
    ReduceOp op;
    bool scatter;          // each member gets its shard only
    bool sharded = false;  // each member reduces its shard, not the owner all of it
    bool advanced = false;
    std::vector<Value> mine = {};  // sharded: this member's part of its shard
    Value result = {};             // as far as it is known here
  };
  Reduction reduction(ReduceOp op, bool scatter) const {
    return {.own = TreeReduction(compute_, op, plan_.lanes), .op = op, .scatter = scatter};
  }
  Status start(Reduction& reduction, std::span<const Value> lanes);
  Status advance(Reduction& reduction);
  Result<Value> finish(Reduction& reduction);
  // All three at once.
  Result<Value> reduce(std::span<const Value> lanes, ReduceOp op, bool scatter);

  Result<Value> all_gather(const Value& mine);
  Result<Value> broadcast(const Value& value, int root);
  Status barrier(const Value& token);
  Result<Value> all_to_all(std::span<const Value> to);

 private:
  enum class Round : std::uint8_t { in, out, direct };  // to the owner, from the owner, between any two

  int size() const { return group_.size(); }
  int me() const { return group_.me; }
  int owner() const { return static_cast<int>(number_ % static_cast<std::uint64_t>(size())); }
  Status send(int member, Round round, const Value& value);
  Result<Value> recv(int member, Round round);
  Status send_to_others(Round round, const Value& value);

  Status reduce_own_lanes(std::span<const Value> lanes, TreeReduction& own);
  Status add_partials_of(int member, Value message, TreeReduction& total);
  bool sharded(const TreeReduction& own) const;
  // The whole result, on the owner only.
  Result<Value> reduce_on_owner(TreeReduction& own, ReduceOp op);
  // Gives every other member its part; this member's is the result.
  Result<std::vector<Value>> send_shards(const TreeReduction& own);
  // This member's shard of the result.
  Result<Value> reduce_own_shard(std::span<const Value> mine, ReduceOp op);
  // The shards of the other members and this one's, put together as a Value of the type and shape of `like`.
  Result<Value> gather_shards(Value mine, const Value& like);
  Result<Value> cut(const Value& whole, int member);
  Result<Value> join(std::span<Value> shards, const Value& like);

  Transport& transport_;
  Compute& compute_;
  const Group& group_;
  const GroupPlan& plan_;
  std::uint64_t number_;
  Time deadline_;
  std::size_t sharded_from_;
};

}  // namespace firedrill
