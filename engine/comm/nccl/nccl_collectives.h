// NcclCollectives: the collectives over NCCL. Data moves by grouped sends and receives, and what is added is added by
// the one fixed tree over lanes (tree.h), so the bits are those of every other transport. `native`: sums are NCCL's own
// instead; such a golden holds for one layout only.
//
// A call is at most two rounds. In a round every member first tells each other how many bytes come, then all bytes move
// in one grouped call. Reductions go to the members' shards and back, or for packs to one owner and back, who changes
// from call to call.
//
// Each group has a communicator of its own, split from that of all ranks. Groups with point-to-point traffic have three
// more, one for each third of the senders in ring order: a rank then never receives behind a send of its own that waits
// for its receiver (on one communicator NCCL runs operations in the order of their issue).
//
// Threads: the rank's tasks, one call of a group at a time. Errors: those of the communicator with the call named, and
// mismatch, if members gave Values of different type or shape.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/comm/nccl/communicator.h"
#include "engine/comm/tree.h"
#include "engine/seam/collectives.h"
#include "engine/seam/compute.h"

namespace firedrill {

struct NcclOptions {
  bool native = false;  // sums in NCCL's own order
};

// A group that will be used. All ranks list theirs of one kind at the same place in the list.
struct NcclGroup {
  Group group;
  bool point_to_point = false;
};

class NcclCollectives final : public Collectives {
 public:
  // `compute` adds. `world`: of all ranks, in the order of their numbers.
  NcclCollectives(std::unique_ptr<Communicator> world, Compute& compute, NcclOptions options = {});
  ~NcclCollectives() override;
  // All ranks call it once, before any other call. Errors: those of the communicator.
  Status connect(std::span<const NcclGroup> groups, Time deadline);

  Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) override;
  Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                               const Call& call) override;
  Result<Value> all_gather(const Group& group, const Value& mine, const Call& call) override;
  Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) override;
  Status barrier(const Group& group, const Call& call) override;
  Result<Value> all_to_all(const Group& group, std::span<const Value> to, const Call& call) override;
  Status send(const Group& group, int peer, const Value& value, const Call& call) override;
  Result<Value> recv(const Group& group, int peer, const Call& call) override;
  void abort(const Error& reason) override;

 private:
  struct Channel;
  // One message for each member; none: nothing is sent.
  using Messages = std::vector<std::optional<Value>>;

  Result<Messages> exchange(Channel& channel, const Group& group, const Messages& to, Time deadline);
  Result<TreeReduction> reduce_own(const Group& group, std::span<const Value> lanes, ReduceOp op);
  Status add_partials(const Group& group, int member, Value message, TreeReduction& total);
  Result<Value> add_all(Channel& channel, const Group& group, Messages partials, ReduceOp op);
  Result<Value> reduce_to_owner(Channel& channel, const Group& group, const TreeReduction& own, ReduceOp op,
                                Time deadline);
  Result<Value> reduce_own_shard(Channel& channel, const Group& group, const TreeReduction& own, ReduceOp op,
                                 Time deadline);
  Result<Value> reduce_natively(Channel& channel, const Group& group, const TreeReduction& own, ReduceOp op,
                                Time deadline);
  Result<Value> reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, Time deadline);
  Channel& channel_of(const Group& group);

  std::unique_ptr<Communicator> world_;
  Compute& compute_;
  NcclOptions options_;
  std::map<std::uint32_t, std::unique_ptr<Channel>> channels_;  // by the group's id
};

}  // namespace firedrill
