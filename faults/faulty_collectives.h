// The collectives seam, with the planned faults of its rank around every call. The messages and additions inside a call
// are positions of their own, of the transport and compute seams.
//
// What a fault wants of a call (CollectiveCall) is done here: another call, none, two, or one behind the next.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/seam/collectives.h"
#include "faults/injector.h"

namespace firedrill {

class FaultyCollectives final : public ForwardingCollectives {
 public:
  FaultyCollectives(Collectives& inner, Injector& injector) : ForwardingCollectives(inner), injector_(injector) {}
  Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) override;
  Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                               const Call& call) override;
  // One position, as the whole call is: behind it the messages are positions of their own.
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

 private:
  // Makes a call later, from copies.
  using Make = std::function<Status(const Group& group, const Call& call)>;
  // A call that is made behind the next one. What it needs is kept here, since its caller has gone on.
  struct Held {
    Held(const CollectiveCall& what, const Call& call, Make made_later)
        : group(what.group),
          made{.op = what.op, .group = group, .peer = what.peer, .sequence = what.sequence},
          make(std::move(made_later)),
          purpose(call.purpose),
          deadline(call.deadline) {
      made.purpose = purpose;
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    Status now() const { return make(group, {.purpose = purpose, .deadline = deadline}); }

    Group group;
    CollectiveCall made;
    Make make;
    std::string purpose;
    Time deadline;
  };
  class LateReduction;
  class CountedReduction;
  struct Stream {
    std::uint32_t group = 0;
    int peer = -1;  // of what goes to or comes from one member
    bool outgoing = false;
    std::int64_t calls = 0;
  };

  std::int64_t count(CollectiveOp op, const Group& group, int peer);
  CollectiveCall made(CollectiveOp op, const Group& group, const Call& call, int peer = -1);
  // `inner` makes the call as the faults want it; `alone` gives what the rank goes on with if it makes none; `hold`
  // puts it off, where the rank need not wait for it (else nullptr).
  template <class Inner, class Alone, class Hold>
  auto with_faults(CollectiveCall& what, Inner inner, Alone alone, Hold hold) -> decltype(inner());
  Result<std::unique_ptr<PendingReduction>> start(CollectiveOp op, const Group& group, std::span<const Value> lanes,
                                                  ReduceOp reduce, const Call& call);
  // A held call that its rank waits for now: it is made in its place, and nothing has fired.
  Status make_in_place();

  Injector& injector_;
  std::vector<Stream> streams_;  // few: found by walking
  std::unique_ptr<Held> held_;
};

}  // namespace firedrill
