// The transport seam, with the planned faults of its rank around every send and recv. connect() is not a position of
// its own: it stands between two calls of the store.
//
// What a fault wants of a message (MessageCall) is done here, when it is sent: it does not leave, leaves twice, or goes
// to the next attempt.
#pragma once

#include "engine/seam/transport.h"
#include "faults/injector.h"

namespace firedrill {

class FaultyTransport final : public ForwardingTransport {
 public:
  FaultyTransport(Transport& inner, Injector& injector) : ForwardingTransport(inner), injector_(injector) {}
  Status send(int peer, Tag tag, const Value& value, Time deadline) override {
    MessageCall message{.peer = peer};
    Value payload = value;
    return injector_.around({.op = SeamOp::send, .message = &message, .value = &payload}, [&]() -> Status {
      if (message.dropped) return {};
      if (message.late) return injector_.effects().send_late(peer, tag, payload), Status();
      if (message.doubled) FD_TRY_VOID(inner_.send(peer, tag, payload, deadline));
      return inner_.send(peer, tag, payload, deadline);
    });
  }
  Result<Value> recv(int peer, Tag tag, Time deadline) override {
    MessageCall message{.peer = peer};
    return injector_.around({.op = SeamOp::recv, .message = &message},
                            [&] { return inner_.recv(peer, tag, deadline); });
  }

 private:
  Injector& injector_;
};

}  // namespace firedrill
