// The transport seam, with the planned faults of its rank around every send and recv. connect() is not a position of
// its own: it stands between two calls of the store.
#pragma once

#include "engine/seam/transport.h"
#include "faults/injector.h"

namespace firedrill {

class FaultyTransport final : public ForwardingTransport {
 public:
  FaultyTransport(Transport& inner, Injector& injector) : ForwardingTransport(inner), injector_(injector) {}
  Status send(int peer, Tag tag, const Value& value, Time deadline) override {
    return injector_.around({.op = SeamOp::send}, [&] { return inner_.send(peer, tag, value, deadline); });
  }
  Result<Value> recv(int peer, Tag tag, Time deadline) override {
    return injector_.around({.op = SeamOp::recv}, [&] { return inner_.recv(peer, tag, deadline); });
  }

 private:
  Injector& injector_;
};

}  // namespace firedrill
