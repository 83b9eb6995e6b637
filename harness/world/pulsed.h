// Decorators that tell a pulse for whom a task waits. They lie right around the seams, below the faults.
//
// They also move the deadline of every wait behind the moment at which the watchdog (liveness.h) would have ended it. A
// wait's deadline counts from the last progress of the peer that is waited for, and only the watchdog sees that; the
// rank's own clock is the backstop, for a watchdog that says nothing.
#pragma once

#include "engine/seam/collectives.h"
#include "engine/seam/host.h"
#include "engine/seam/pulse.h"
#include "engine/seam/store.h"
#include "engine/seam/transport.h"

namespace firedrill {

// `deadline` later by `extra`, if it is one.
inline Time put_off(Time deadline, Duration extra) {
  return deadline > Time::max() - extra ? Time::max() : deadline + extra;
}

class WaitingFor {
 public:
  WaitingFor(Pulse& pulse, int whom) : pulse_(pulse) { pulse_.wait_for(whom); }
  ~WaitingFor() { pulse_.stop_waiting(); }
  WaitingFor(const WaitingFor&) = delete;
  WaitingFor& operator=(const WaitingFor&) = delete;

 private:
  Pulse& pulse_;
};

class PulsedTransport final : public ForwardingTransport {
 public:
  PulsedTransport(Transport& inner, Pulse& pulse, Duration extra)
      : ForwardingTransport(inner), pulse_(pulse), extra_(extra) {}
  Status connect(const std::vector<std::string>& addresses, Time deadline) override {
    const WaitingFor waiting(pulse_, PulseReading::store);
    return inner_.connect(addresses, put_off(deadline, extra_));
  }
  Status send(int peer, Tag tag, const Value& value, Time deadline) override {
    const WaitingFor waiting(pulse_, peer);
    return inner_.send(peer, tag, value, put_off(deadline, extra_));
  }
  Result<Value> recv(int peer, Tag tag, Time deadline) override {
    const WaitingFor waiting(pulse_, peer);
    return inner_.recv(peer, tag, put_off(deadline, extra_));
  }

 private:
  Pulse& pulse_;
  Duration extra_;
};

// Around collectives that do not go through a transport. A member waits for the one behind it: the chain of those who
// wait then leads through all that are in the call to the one that is not.
class PulsedCollectives final : public ForwardingCollectives {
 public:
  PulsedCollectives(Collectives& inner, Pulse& pulse, Duration extra)
      : ForwardingCollectives(inner), pulse_(pulse), extra_(extra) {}
  Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) override {
    const WaitingFor waiting(pulse_, behind(group));
    return inner_.all_reduce(group, lanes, op, later(call));
  }
  Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                               const Call& call) override {
    const WaitingFor waiting(pulse_, behind(group));
    return inner_.reduce_scatter(group, lanes, op, later(call));
  }
  Result<Value> all_gather(const Group& group, const Value& mine, const Call& call) override {
    const WaitingFor waiting(pulse_, behind(group));
    return inner_.all_gather(group, mine, later(call));
  }
  Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) override {
    const WaitingFor waiting(pulse_, behind(group));
    return inner_.broadcast(group, value, root, later(call));
  }
  Status barrier(const Group& group, const Call& call) override {
    const WaitingFor waiting(pulse_, behind(group));
    return inner_.barrier(group, later(call));
  }
  Result<Value> all_to_all(const Group& group, std::span<const Value> to, const Call& call) override {
    const WaitingFor waiting(pulse_, behind(group));
    return inner_.all_to_all(group, to, later(call));
  }
  Status send(const Group& group, int peer, const Value& value, const Call& call) override {
    const WaitingFor waiting(pulse_, group.ranks[static_cast<std::size_t>(peer)]);
    return inner_.send(group, peer, value, later(call));
  }
  Result<Value> recv(const Group& group, int peer, const Call& call) override {
    const WaitingFor waiting(pulse_, group.ranks[static_cast<std::size_t>(peer)]);
    return inner_.recv(group, peer, later(call));
  }

 private:
  static int behind(const Group& group) {
    if (group.size() == 1) return PulseReading::nobody;
    return group.ranks[static_cast<std::size_t>((group.me + 1) % group.size())];
  }
  Call later(const Call& call) const { return {.purpose = call.purpose, .deadline = put_off(call.deadline, extra_)}; }

  Pulse& pulse_;
  Duration extra_;
};

class PulsedStore final : public ForwardingStore {
 public:
  PulsedStore(Store& inner, Pulse& pulse, Duration extra) : ForwardingStore(inner), pulse_(pulse), extra_(extra) {}
  Result<std::string> get(std::string_view key, Time deadline) override {
    const WaitingFor waiting(pulse_, PulseReading::store);
    return inner_.get(key, put_off(deadline, extra_));
  }

 private:
  Pulse& pulse_;
  Duration extra_;
};

// Of the main task: while it waits for an event, another task of its rank works for it.
class PulsedHost final : public ForwardingHost {
 public:
  PulsedHost(Host& inner, RankPulse& pulse) : ForwardingHost(inner), pulse_(pulse) {}
  Status wait(EventId event, Time deadline) override {
    pulse_.main_follows.store(true, std::memory_order_release);
    Status waited = inner_.wait(event, deadline);
    pulse_.main_follows.store(false, std::memory_order_release);
    return waited;
  }

 private:
  RankPulse& pulse_;
};

}  // namespace firedrill
