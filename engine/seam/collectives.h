// Collectives over a group of ranks. All ranks of a group must issue the same calls in the same order.
//
// Reductions are over lanes, not over ranks: each rank gives the Values of the lanes it owns, in lane order, and the
// result is the one fixed binary tree over all lanes of the group, so it has the same bits however the lanes lie on
// ranks. The tree: at level l node i covers lanes [i * 2^l, min((i + 1) * 2^l, lanes)) and is the sum of its two
// children, left first; a node with one child is that child.
//
// `purpose` says what the call is for ("grad.layers.0.mlp"): a tag that all ranks must agree on. Errors as in
// transport.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/seam/clock.h"

namespace firedrill {

struct LaneRange {
  int begin = 0;
  int end = 0;
  int count() const { return end - begin; }
  bool operator==(const LaneRange&) const = default;
};

struct Group {
  std::uint32_t id = 0;          // unique in the layout
  std::string name;              // "dp", "world", "tp.3"
  std::vector<int> ranks;        // world ranks, ascending
  std::vector<LaneRange> lanes;  // lanes[i] are owned by ranks[i]; contiguous, in order
  int me = 0;                    // index of this rank in `ranks`

  int size() const { return static_cast<int>(ranks.size()); }
  int lane_count() const { return lanes.empty() ? 0 : lanes.back().end; }
};

enum class ReduceOp : std::uint8_t { sum, max, min };

struct Call {
  std::string_view purpose;
  Time deadline;
};

// A reduction that was started and goes on while its caller computes. Members start, advance and finish theirs in the
// same order. The group and the parts of the rank must outlive it; one that is never finished leaves its group
// unusable.
class PendingReduction {
 public:
  virtual ~PendingReduction() = default;
  // Does what the other members wait for: takes their parts, gives the sum. Members that have several on the way
  // advance them all before they finish the first. Without it finish() does the same.
  virtual Status advance() = 0;
  // Waits for the rest. Once only.
  virtual Result<Value> finish() = 0;
};

// One whose result is there already.
class DoneReduction final : public PendingReduction {
 public:
  explicit DoneReduction(Value result) : result_(std::move(result)) {}
  Status advance() override { return {}; }
  Result<Value> finish() override { return std::move(result_); }

 private:
  Value result_;
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  // `lanes`: one Value per lane this rank owns, all of one type (f32, i64) and shape, or packs of such, all alike.
  // Result: the same shape.
  virtual Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) = 0;
  // As all_reduce for one-dimensional Values, but each rank gets its shard only: shard_range(count, size, me).
  virtual Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                       const Call& call) = 0;
  // The same, begun only: this member's parts are on their way when it returns. Here, and so in every decorator that
  // does not say otherwise, the whole is done at once: right, and nothing overlaps.
  virtual Result<std::unique_ptr<PendingReduction>> start_all_reduce(const Group& group, std::span<const Value> lanes,
                                                                     ReduceOp op, const Call& call) {
    FD_TRY(Value result, all_reduce(group, lanes, op, call));
    return Result<std::unique_ptr<PendingReduction>>(std::make_unique<DoneReduction>(std::move(result)));
  }
  virtual Result<std::unique_ptr<PendingReduction>> start_reduce_scatter(const Group& group,
                                                                         std::span<const Value> lanes, ReduceOp op,
                                                                         const Call& call) {
    FD_TRY(Value result, reduce_scatter(group, lanes, op, call));
    return Result<std::unique_ptr<PendingReduction>>(std::make_unique<DoneReduction>(std::move(result)));
  }
  // A pack with one Value per rank of the group, in group order. Sizes may differ.
  virtual Result<Value> all_gather(const Group& group, const Value& mine, const Call& call) = 0;
  // `value` counts on the root only. `root` is an index in the group.
  virtual Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) = 0;
  virtual Status barrier(const Group& group, const Call& call) = 0;
  // to[i] goes to member i; the pack that comes back has from member i its i-th part. Parts may be empty Values.
  virtual Result<Value> all_to_all(const Group& group, std::span<const Value> to, const Call& call) = 0;
  // `peer` is an index in the group. Sends and receives of a pair match in order.
  virtual Status send(const Group& group, int peer, const Value& value, const Call& call) = 0;
  virtual Result<Value> recv(const Group& group, int peer, const Call& call) = 0;
  // May be called from anywhere; all waits end.
  virtual void abort(const Error& reason) = 0;
};

// Does not forward start_*: they run the calls below, so that what a decorator does to those is done to them too. One
// that can do it by halves overrides them.
class ForwardingCollectives : public Collectives {
 public:
  explicit ForwardingCollectives(Collectives& inner) : inner_(inner) {}
  Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) override {
    return inner_.all_reduce(group, lanes, op, call);
  }
  Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                               const Call& call) override {
    return inner_.reduce_scatter(group, lanes, op, call);
  }
  Result<Value> all_gather(const Group& group, const Value& mine, const Call& call) override {
    return inner_.all_gather(group, mine, call);
  }
  Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) override {
    return inner_.broadcast(group, value, root, call);
  }
  Status barrier(const Group& group, const Call& call) override { return inner_.barrier(group, call); }
  Result<Value> all_to_all(const Group& group, std::span<const Value> to, const Call& call) override {
    return inner_.all_to_all(group, to, call);
  }
  Status send(const Group& group, int peer, const Value& value, const Call& call) override {
    return inner_.send(group, peer, value, call);
  }
  Result<Value> recv(const Group& group, int peer, const Call& call) override { return inner_.recv(group, peer, call); }
  void abort(const Error& reason) override { inner_.abort(reason); }

 protected:
  Collectives& inner_;
};

// Flat shards start at multiples of this many elements (one grain of the gradient norm).
inline constexpr std::int64_t grain = 64;

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Shard `index` of `count` elements cut into `shards` runs of whole grains, as even as grains allow; some are a grain
// shorter, or empty. The cuts nest: shard i of n is shards i * k to (i + 1) * k of n * k.
Range shard_range(std::int64_t count, int shards, int index);

}  // namespace firedrill
