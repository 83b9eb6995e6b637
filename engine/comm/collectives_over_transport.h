// TransportCollectives: the collectives over point-to-point messages.
//
// Small reductions go to one member, the owner of the call, and back: 2 (n - 1) messages. Large ones are cut into one
// shard for each member, which owns the tree of its shard (reduce-scatter, then all-gather). Arithmetic is elementwise
// and the tree is the same, so both give the same bits. The owner changes round-robin from call to call, to spread the
// work. Which way a call goes follows from what all members know alike.
//
// Messages of a call are tagged by (group, call number within the group, round), never by purpose: members that
// disagree about the purpose meet in the same call.
//
// A reduction that is only started has sent this member's parts: to the owner, or shard by shard. Advancing it takes
// the others' parts, adds them and sends the sum, which finishing it receives. So the way in overlaps with what the
// rank computes in between, and the way out of several started reductions with each other.
//
// Threads: the rank's tasks, one call of a group at a time. Errors: as in transport, with the call named in the
// message; mismatch, if members gave Values of different type or shape. After an error the group cannot be used in this
// attempt: its members may be at different calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/comm/exchange.h"
#include "engine/seam/collectives.h"
#include "engine/seam/compute.h"
#include "engine/seam/observer.h"
#include "engine/seam/position.h"
#include "engine/seam/transport.h"

namespace firedrill {

struct CollectivesOptions {
  // Values of this many bytes and more are reduced by shards, and gathered without a detour over the owner.
  std::size_t sharded_from = 256 * 1024;
};

class TransportCollectives final : public Collectives {
 public:
  TransportCollectives(Transport& transport, Compute& compute, const Position& position, Observer& observer,
                       CollectivesOptions options = {});
  ~TransportCollectives() override;

  // `lanes` may also be packs of f32 and i64 Values, all alike: several tensors in one exchange.
  Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) override;
  Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                               const Call& call) override;
  Result<std::unique_ptr<PendingReduction>> start_all_reduce(const Group& group, std::span<const Value> lanes,
                                                             ReduceOp op, const Call& call) override;
  Result<std::unique_ptr<PendingReduction>> start_reduce_scatter(const Group& group, std::span<const Value> lanes,
                                                                 ReduceOp op, const Call& call) override;
  Result<Value> all_gather(const Group& group, const Value& mine, const Call& call) override;
  Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) override;
  Status barrier(const Group& group, const Call& call) override;
  Result<Value> all_to_all(const Group& group, std::span<const Value> to, const Call& call) override;
  Status send(const Group& group, int peer, const Value& value, const Call& call) override;
  Result<Value> recv(const Group& group, int peer, const Call& call) override;
  void abort(const Error& reason) override;

 private:
  class Pending;

  GroupPlan& plan_of(const Group& group);
  Exchange begin(const Group& group, const Call& call);
  Error report(std::string_view operation, const Group& group, const Call& call, Error error);

  Transport& transport_;
  Compute& compute_;
  const Position& position_;
  Observer& observer_;
  CollectivesOptions options_;
  std::vector<std::unique_ptr<GroupPlan>> plans_;  // few: found by walking
  Value token_;                                    // what a barrier sends
};

}  // namespace firedrill
