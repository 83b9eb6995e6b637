// Decorators that tell a pulse for whom a task waits. They lie right around the seams, below the faults.
//
// They also move the deadline of every wait behind the moment at which the watchdog (liveness.h) would have ended it. A
// wait's deadline counts from the last progress of the peer that is waited for, and only the watchdog sees that; the
// rank's own clock is the backstop, for a watchdog that says nothing.
#pragma once

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
