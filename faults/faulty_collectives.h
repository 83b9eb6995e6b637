// The collectives seam, with the planned faults of its rank around every call. The messages and additions inside a call
// are positions of their own, of the transport and compute seams.
#pragma once

#include "engine/seam/collectives.h"
#include "faults/injector.h"

namespace firedrill {

class FaultyCollectives final : public ForwardingCollectives {
 public:
  FaultyCollectives(Collectives& inner, Injector& injector) : ForwardingCollectives(inner), injector_(injector) {}
  Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) override {
    return injector_.around(site, [&] { return inner_.all_reduce(group, lanes, op, call); });
  }
  Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                               const Call& call) override {
    return injector_.around(site, [&] { return inner_.reduce_scatter(group, lanes, op, call); });
  }
  // One position, as the whole call is: behind it the messages are positions of their own.
  Result<std::unique_ptr<PendingReduction>> start_all_reduce(const Group& group, std::span<const Value> lanes,
                                                             ReduceOp op, const Call& call) override {
    return injector_.around(site, [&] { return inner_.start_all_reduce(group, lanes, op, call); });
  }
  Result<std::unique_ptr<PendingReduction>> start_reduce_scatter(const Group& group, std::span<const Value> lanes,
                                                                 ReduceOp op, const Call& call) override {
    return injector_.around(site, [&] { return inner_.start_reduce_scatter(group, lanes, op, call); });
  }
  Result<Value> all_gather(const Group& group, const Value& mine, const Call& call) override {
    return injector_.around(site, [&] { return inner_.all_gather(group, mine, call); });
  }
  Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) override {
    return injector_.around(site, [&] { return inner_.broadcast(group, value, root, call); });
  }
  Status barrier(const Group& group, const Call& call) override {
    return injector_.around(site, [&] { return inner_.barrier(group, call); });
  }
  Result<Value> all_to_all(const Group& group, std::span<const Value> to, const Call& call) override {
    return injector_.around(site, [&] { return inner_.all_to_all(group, to, call); });
  }
  Status send(const Group& group, int peer, const Value& value, const Call& call) override {
    return injector_.around(site, [&] { return inner_.send(group, peer, value, call); });
  }
  Result<Value> recv(const Group& group, int peer, const Call& call) override {
    return injector_.around(site, [&] { return inner_.recv(group, peer, call); });
  }

 private:
  static constexpr CallSite site{.op = SeamOp::collective};

  Injector& injector_;
};

}  // namespace firedrill
